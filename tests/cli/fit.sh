#!/bin/sh
# clustersim fit, and what follows the measuring of the GPU day, on recorded samples.
program=$(cd "$(dirname "${CLUSTERSIM:-build/clustersim}")" && pwd)/$(basename "${CLUSTERSIM:-build/clustersim}")
n=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
samples=calibrate/samples/a100-published/samples.jsonl

# result NAME STATUS: status of the condition
result () {
  n=$((n + 1))
  if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    sed 's/^/# /' "$dir"/out "$dir"/err 2>/dev/null
  fi
}
run () { "$program" fit "$@" >"$dir/out" 2>"$dir/err"; }
status () { [ $? -eq "$1" ]; }

run --help && grep -q 'clustersim fit calibrate/samples' "$dir/out"
result "help" $?

run $samples --base A100-SXM-80GB --name mine -o "$dir/mine.json" && grep -q 'held out' "$dir/out" &&
  grep -q '"name": "mine"' "$dir/mine.json" && grep -q '"kind": "measured", "source": "clustersim fit of samples' "$dir/mine.json"
result "a profile and its report" $?

run $samples --base A100-SXM-80GB --format json && grep -q '"median_abs_error_pct"' "$dir/out"
result "the report as JSON" $?

run $samples -o "$dir/known.json" && grep -q '"name": "A100-SXM-80GB"' "$dir/known.json"
result "the base follows from the device's name" $?

run $samples --seed 3 --base A100-SXM-80GB -o "$dir/a.json" && run $samples --seed 3 --base A100-SXM-80GB -o "$dir/b.json" &&
  cmp -s "$dir/a.json" "$dir/b.json"
result "the same twice" $?

run $samples --base "$dir/a.json" --seed 3 -o "$dir/b.json" && sed 's/, "kind.*//' "$dir/a.json" >"$dir/a.txt" &&
  sed 's/, "kind.*//' "$dir/b.json" >"$dir/b.txt" && cmp -s "$dir/a.txt" "$dir/b.txt"
result "a fit that starts from its own profile comes back to it" $?

head -n 50 $samples >"$dir/cut.jsonl"
run "$dir/cut.jsonl" --base A100-SXM-80GB -o "$dir/no.json"
status 2 && [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -e "$dir/no.json" ] && [ ! -s "$dir/out" ] && grep -q 'cut' "$dir/err"
result "a cut file: status 2, one line, no profile" $?

run $samples --base A100-SXM-80GB --attention-kernel nine
status 2 && grep -q 'flash3' "$dir/err"
result "an unknown kernel" $?

if command -v gnuplot >/dev/null; then
  run $samples --base A100-SXM-80GB --plot "$dir/fit.svg" && grep -q '<svg' "$dir/fit.svg" && [ ! -e "$dir/fit.svg.csv" ]
  result "the picture" $?
else
  n=$((n + 1))
  echo "ok $n - the picture # SKIP no gnuplot"
fi

CLUSTERSIM=$program calibrate/gpu-day.sh --samples $samples --steps "2:0.08 4:0.14" "$dir/day" >"$dir/out" 2>"$dir/err" &&
  [ "$(find "$dir/day" -type f | wc -l)" -le 8 ] && grep -q 'one layer' "$dir/day/comparison.txt" &&
  grep -q 'step of 4 layers .*%' "$dir/day/comparison.txt"
result "the GPU day from recorded samples" $?

: >"$dir/none.jsonl"
CLUSTERSIM=$program calibrate/gpu-day.sh --samples "$dir/none.jsonl" --steps "2:0.08" "$dir/day" >"$dir/out" 2>"$dir/err"
status 1 && grep -q 'no collector' "$dir/out" && [ ! -e "$dir/day/profile.json" ]
result "a GPU day without samples: status 1, and no profile of the day before" $?

echo "1..$n"
