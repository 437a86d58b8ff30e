#!/bin/sh
# GPU day: on a bare machine with a CUDA GPU, in under 8 minutes: build, measure, fit, time a real training
# step, and print predicted against measured. Results: one folder of at most 8 files.
#   calibrate/gpu-day.sh [OUTDIR]
#   calibrate/gpu-day.sh --samples FILE --steps "LAYERS:SECONDS …" [OUTDIR]   the same from recorded ones
# Environment: MINUTES for the collectors together (4.5, or less where the build took long), CLUSTERSIM, BUILDDIR.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
samples='' steps=''
while [ $# -gt 0 ]; do
  case $1 in
  --samples) samples=${2:?is missing: a file of samples}; shift 2 ;;
  --steps) steps=${2?is missing: LAYERS:SECONDS}; shift 2 ;;
  -*) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
  *) break ;;
  esac
done
out=${1:-gpu-day-$(date +%Y%m%d-%H%M)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
BUILDDIR=${BUILDDIR:-build}
bin=$BUILDDIR/calibrate
CLUSTERSIM=${CLUSTERSIM:-$BUILDDIR/clustersim}
start=$(date +%s)
whole=460 # seconds for all, of which the last are for the steps, the fit and the prediction
say() { echo "gpu-day: $(($(date +%s) - start)) s: $*" | tee -a "$out/log.txt"; }
part() { awk -v a="$1" -v m="$minutes" 'BEGIN {printf "%.3f", a * m / 4.5}'; }
left() { echo $((whole - $(date +%s) + start)); }
# what an earlier run left here is not of this one
rm -f "$out/samples.jsonl" "$out/profile.json" "$out/fit.txt" "$out/fit.svg" "$out/fabric.json" "$out/comparison.txt"
: >"$out/log.txt"

# ---- build and measure ----

cap=
measure() { # minutes program …: a collector that fails, or hangs, leaves no half set behind
  m=$(part "$1")
  shift
  status=0
  timeout "$(awk -v m="$m" 'BEGIN {printf "%d", 60 * m + 25}')" "$@" --minutes "$m" >"$out/part.jsonl" 2>>"$out/log.txt" ||
    status=$?
  if [ $status -eq 0 ]; then
    cat "$out/part.jsonl" >>"$out/samples.jsonl"
  else
    say "$(basename "$1") failed (status $status); its samples are dropped"
  fi
  rm -f "$out/part.jsonl"
}
if [ -z "$samples" ]; then
  command -v nvidia-smi >/dev/null || { say "no nvidia-smi: is there a GPU? (recorded samples: --samples)"; exit 77; }
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv,noheader >>"$out/log.txt"
  cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d ' .')
  say "building for sm_$cap"
  # a machine without the libraries of one collector still builds the others
  make -k -j"$(nproc)" calibrate "CUDA_ARCH=-arch=sm_$cap" >>"$out/log.txt" 2>&1 ||
    say "some parts were not built (log.txt says which)"
  make -j"$(nproc)" >>"$out/log.txt" 2>&1 || say "clustersim was not built here; fit the samples elsewhere"
  : >"$out/samples.jsonl"
  # collectors overrun their budgets a little, and the steps and the fit need a minute
  minutes=${MINUTES:-$(awk -v s="$(left)" 'BEGIN {m = (s - 110) / 60; printf "%.2f", m > 4.5 ? 4.5 : m < 0.5 ? 0.5 : m}')}
  say "measuring for $minutes minutes"
  for what in cal_membw:0.25 cal_launch:0.08 cal_kernels:0.4 cal_gemm:1.9 cal_attention:0.4 cal_overlap:0.15 \
    cal_p2p:0.1 cal_overlap_coll:0.1 cal_nccl:0.6; do
    if [ -x "$bin/${what%%:*}" ]; then
      measure "${what##*:}" "$bin/${what%%:*}"
    else
      say "${what%%:*} was not built: left out"
    fi
  done
  if python3 -c 'import torch' 2>/dev/null; then
    say "attention through PyTorch"
    measure 0.5 python3 calibrate/cal_attention.py
  fi
  for layers in 2 4; do
    [ -x "$bin/cal_layer" ] || { say "cal_layer was not built: no step to compare"; break; }
    say "a training step of $layers layers"
    s=$(timeout 40 "$bin/cal_layer" --layers $layers 2>>"$out/log.txt" | sed -n 's/.*"median_s": \([0-9.]*\).*/\1/p') || s=
    [ -z "$s" ] || steps="$steps $layers:$s"
  done
else
  cp "$samples" "$out/samples.jsonl"
fi
[ -s "$out/samples.jsonl" ] || { say "no collector has brought a sample: log.txt says why"; exit 1; }
[ -x "$CLUSTERSIM" ] || { say "no $CLUSTERSIM: the samples are in $out"; exit 1; }

# ---- fit ----

device=$(sed -n 's/.*"device": "\([^"]*\)".*/\1/p' "$out/samples.jsonl" | head -n 1)
case $device in # the profile that holds what samples do not
*GB300*) base=GB300-288GB ;; *GB200*) base=GB200-186GB ;; *B300*) base=B300-SXM-288GB ;;
*B200*) base=B200-SXM-180GB ;; *GH200*) base=GH200-96GB ;; *H200*) base=H200-SXM-141GB ;;
*H100*PCIe*) base=H100-PCIe-80GB ;; *H100*) base=H100-SXM-80GB ;; *H800*) base=H800-SXM-80GB ;;
*H20*) base=H20-SXM-96GB ;; *A100*PCI*80* | *A100*80*PCI*) base=A100-PCIe-80GB ;; *A100*PCI*) base=A100-PCIe-40GB ;;
*A100*40*) base=A100-SXM-40GB ;; *A100*) base=A100-SXM-80GB ;; *A40) base=A40-48GB ;;
*L40*) base=L40S-48GB ;; *L4*) base=L4-24GB ;; *4090*) base=RTX-4090-24GB ;; *5090*) base=RTX-5090-32GB ;;
*PRO*6000*) base=RTX-PRO-6000-96GB ;; *V100*16*) base=V100-SXM2-16GB ;; *V100*) base=V100-SXM2-32GB ;;
*) case $cap in 10*) base=B200-SXM-180GB ;; 9*) base=H100-SXM-80GB ;; *) base=A100-SXM-80GB ;; esac ;;
esac
name=$(echo "$device" | sed 's/^NVIDIA //; s/[^A-Za-z0-9._-]/-/g')-measured
say "fitting $device from $base"
set -- --base "$base" --name "$name" -o "$out/profile.json"
if command -v gnuplot >/dev/null; then set -- "$@" --plot "$out/fit.svg"; fi
"$CLUSTERSIM" fit "$out/samples.jsonl" "$@" >"$out/fit.txt" || { say "the fit failed"; exit 1; }
if [ "$(grep -c '"kind": "coll"' "$out/samples.jsonl" || true)" -ge 4 ]; then
  fabric=dgx-h100-ndr
  case $base in A100*) fabric=dgx-a100-hdr ;; B*) fabric=dgx-b200-ndr ;; L40*) fabric=l40s-pcie4 ;;
  GB200*) fabric=gb200-nvl72 ;; GB300*) fabric=gb300-nvl72 ;; RTX-PRO*) fabric=rtx-pro-6000-pcie5 ;; esac
  "$CLUSTERSIM" fit "$out/samples.jsonl" --as fabric --base $fabric --name "$name-node" \
    -o "$out/fabric.json" >>"$out/fit.txt"
fi

# ---- predicted against measured ----

predict() {
  "$CLUSTERSIM" predict calibrate/closed-loop/gpu-scenario.json --format json \
    --set "cluster.gpu=$out/profile.json" --set "model.num_layers=$1" |
    sed -n 's/^ *"step_time_s": \([0-9.e+-]*\).*/\1/p'
}
{
  sed -n '/fitted to/,/^$/p' "$out/fit.txt"
  printf '%-30s %12s %12s %8s\n' "$device" predicted measured error
  last=
  for pair in $steps; do
    layers=${pair%%:*} measured=${pair##*:}
    predicted=$(predict "$layers")
    echo "step of $layers layers|$predicted|$measured"
    if [ -n "$last" ]; then
      awk -v l="$layers" -v p="$predicted" -v m="$measured" -v last="$last" 'BEGIN {
        split(last, a, ":"); n = l - a[1]
        printf "one layer|%.9g|%.9g\n", (p - a[2]) / n, (m - a[3]) / n }'
    fi
    last=$layers:$predicted:$measured
  done | awk -F'|' '{printf "%-30s %10.3f ms %10.3f ms %+6.1f %%\n", $1, 1e3 * $2, 1e3 * $3, 100 * ($2 / $3 - 1)}'
} >"$out/comparison.txt"
cat "$out/comparison.txt"
say "done: $(find "$out" -type f | wc -l) files in $out"
