#!/bin/sh
# Writes the GEMM numbers of the shipped profiles that come out of `clustersim fit` again.
# usage: calibrate/ship.sh DATA OUTDIR    DATA: folder with gemm.csv and ops/aiconfigurator_*.csv
set -eu
data=$1 out=$2
bin=${CLUSTERSIM:-build/clustersim}
mkdir -p "$out"

# profile, column of the wide table, name in the long one
while read -r profile column name; do
  echo "== $profile"
  "$bin" fit "$data/ops/aiconfigurator_gemm_bf16_us.csv" "$data/gemm.csv" --where 'dtype~bf16' \
    --gpu "$column" --gpu "$name" --base "$profile" -o "$out/$profile.json" \
    --source 'aiconfigurator 095f58a bf16 GEMM tables (SGLang collector, and TensorRT-LLM where there is one)'
done <<'LIST'
A100-SXM-80GB a100_sxm80_sglang A100-SXM-80GB
H200-SXM-141GB h200_sxm_sglang H200-SXM
GB200-186GB gb200_sglang GB200
GB300-288GB gb300_sglang GB300
L40S-48GB l40s_sglang L40S
RTX-PRO-6000-96GB rtxpro6000_sglang -
LIST
