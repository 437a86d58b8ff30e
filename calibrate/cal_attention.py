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
head = {"device": torch.cuda.get_device_name(), "date": datetime.date.today().isoformat()}
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
        a.record()
        run()
        b.record()
        b.synchronize()
        times.append(1e3 * a.elapsed_time(b))
    times.sort()
    return times


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
