#!/usr/bin/env python3
"""Attention through PyTorch: forward and backward, causal and full, by kernel. JSON lines as the other
collectors print. usage: cal_attention.py [--minutes M]"""
import argparse
import datetime
import json
import sys
import time

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    sys.exit("cal_attention.py: no PyTorch with torch.nn.attention")
if not torch.cuda.is_available():
    print("cal_attention.py: no CUDA device", file=sys.stderr)
    sys.exit(77)

options = argparse.ArgumentParser()
options.add_argument("--minutes", type=float, default=0.7)
end = time.monotonic() + 60 * options.parse_args().minutes
head = {"device": torch.cuda.get_device_name(), "date": datetime.date.today().isoformat(),
        "versions": "torch %s, CUDA %s, cuDNN %s" % (torch.__version__, torch.version.cuda,
                                                     torch.backends.cudnn.version())}
# written before each repeat, so that nothing is in the L2 cache; its size where torch tells it
l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 128 << 20)
flush = torch.empty(2 * l2_bytes + (1 << 20), dtype=torch.uint8, device="cuda")
samples = left_out = 0


def flash_kernel():
    """The flash kernel that PyTorch carries is the second generation's on every part."""
    return "flash2"


def time_us(run):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(15):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        a.record()
        run()
        b.record()
        b.synchronize()
        times.append(1e3 * a.elapsed_time(b))
    times.sort()
    return times


def attend(backend, q, k, v, causal):
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=k.shape[1] != q.shape[1])


def check(backend):
    """Results and gradients of a small case against the plain formula in fp32; the program ends when they
    differ, and a kernel that is not there is no error here."""
    for causal in (True, False):
        q, k, v, grad = (torch.randn(1, 2, 256, 64, device="cuda") for _ in range(4))
        plain = [x.clone().requires_grad_() for x in (q, k, v)]
        score = plain[0] @ plain[1].transpose(2, 3) / 8
        if causal:
            score = score.masked_fill(torch.ones(256, 256, device="cuda").triu(1).bool(), float("-inf"))
        want = score.softmax(-1) @ plain[2]
        wants = (want,) + torch.autograd.grad(want, plain, grad)
        half = [x.bfloat16().requires_grad_() for x in (q, k, v)]
        try:
            got = attend(backend, *half, causal)
        except (RuntimeError, TypeError):
            continue
        gots = (got,) + torch.autograd.grad(got, half, grad.bfloat16())
        for w, g in zip(wants, gots):
            if not (w - g.float()).abs().max() <= 0.05 * max(1.0, w.abs().max().item()):
                sys.exit("cal_attention.py: %s, causal %s, is wrong" % (backend, causal))


def sample(kernel, backend, batch, heads, kv_heads, seq, dim, causal):
    global samples, left_out
    if time.monotonic() > end:
        left_out += 2
        return
    make = lambda h: torch.randn(batch, h, seq, dim, device="cuda", dtype=torch.bfloat16,
                                 requires_grad=True)
    try:
        q, k, v = make(heads), make(kv_heads), make(kv_heads)
        grad = torch.randn_like(q)
        with sdpa_kernel(backend):
            run = lambda: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=kv_heads != heads)
            out = run()
            passes = {"forward": run,
                      "backward": lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)}
            for name, call in passes.items():
                t = time_us(call)
                print(json.dumps({"kind": "attention", **head, "kernel": kernel, "dtype": "bf16",
                                  "library": "torch " + torch.__version__, "pass": name,
                                  "causal": causal, "batch": batch, "heads": heads,
                                  "kv_heads": kv_heads, "seq_q": seq, "seq_kv": seq,
                                  "head_dim_qk": dim, "head_dim_v": dim,
                                  "time_us": round(t[len(t) // 2], 3), "p10_us": round(t[1], 3),
                                  "p90_us": round(t[-2], 3), "reps": len(t)}), flush=True)
                samples += 1
    except (RuntimeError, TypeError):
        left_out += 2


for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
    check(backend)
for seq in (4096, 2048, 8192, 1024, 16384, 512):
    for dim in (128, 64):
        for causal in (True, False):
            for kv in (8, 32):
                batch = max(1, 16384 // seq)
                sample(flash_kernel(), SDPBackend.FLASH_ATTENTION, batch, 32, kv, seq, dim, causal)
                sample("cudnn", SDPBackend.CUDNN_ATTENTION, batch, 32, kv, seq, dim, causal)
if left_out:
    print(json.dumps({"kind": "left_out", **head, "points": left_out, "why": "budget, or not supported"}))
print(json.dumps({"kind": "end", **head, "samples": samples}))
