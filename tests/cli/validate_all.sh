#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# validate --all: a folder of tables against the targets; with one table the others have no rows.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
mkdir "$tmp/data"
{ head -1 "$CLUSTERSIM_SCENARIOS/published/runs.csv"; grep -E '^(vtrain|mpt|bloompre|nemo|korthi)' "$CLUSTERSIM_SCENARIOS/published/runs.csv"; } >"$tmp/data/runs.csv"
cat >"$tmp/data/memory.csv" <<'T'
id,case,platform,max_allocated_bytes,allocated_after_step_bytes,megatron_args
m,gpt/x,H100-80,2561334272,1259751936,--num-layers=12 --hidden-size=512 --num-attention-heads=8 --seq-length=1024 --max-position-embeddings=1024 --bf16=true --micro-batch-size=4 --global-batch-size=32 --transformer-impl=transformer_engine --recompute-granularity=full --recompute-method=uniform --recompute-num-layers=1
T
echo 'a table,of no kind' >"$tmp/data/other.csv"
done_with "a folder" validate --all "$tmp/data"
grep -Eq '^memory, allocated after a step: median  *at most 2 %  *0\.[0-9]+  holds  *1$' "$out" && ok "a target that holds" || nok "a target that holds"
grep -Eq '^GEMM over.*no rows' "$out" && ok "a table that is not there" || nok "a table that is not there"
tail -1 "$out" | grep -Eq '^[0-9]+ of [0-9]+ hold$' && ok "how many hold" || nok "how many hold"
done_with "as a table" validate --all "$tmp/data" --format csv
refused "no folder" 2 'runs.csv' validate --all "$tmp/none"
if [ -z "${CLUSTERSIM_SHARED:-}" ]; then
  skip "the whole of the measurements" "CLUSTERSIM_SHARED is not set"
else
  done_with "the whole of the measurements" validate --all "$CLUSTERSIM_SHARED/data"
fi
finish
