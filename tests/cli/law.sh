#!/bin/sh
# law: every example of every --help works as printed, the three formats, and bad calls and tables:
# one line on stderr, nothing on stdout, exit status 2.
program=$(realpath "${CLUSTERSIM:-build/clustersim}")
CLUSTERSIM_SCENARIOS=$(realpath "${CLUSTERSIM_SCENARIOS:-scenarios}")
export CLUSTERSIM_SCENARIOS
n=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1 # examples may write a file
out=$tmp/out err=$tmp/err

# check NAME STATUS STDOUT-PATTERN STDERR-PATTERN ARGS...
check () {
  name=$1 status=$2 wanted_out=$3 wanted_err=$4
  shift 4
  n=$((n + 1))
  "$program" law "$@" >"$out" 2>"$err"
  got=$?
  verdict="ok"
  [ "$got" -eq "$status" ] || verdict="not ok"
  # shellcheck disable=SC2254
  case $(cat "$out") in $wanted_out) ;; *) verdict="not ok" ;; esac
  # shellcheck disable=SC2254
  case $(cat "$err") in $wanted_err) ;; *) verdict="not ok" ;; esac
  [ "$(wc -l <"$err")" -le 1 ] || verdict="not ok"
  echo "$verdict $n - $name"
  [ "$verdict" = ok ] || { echo "# status $got"; head -5 "$out" "$err" | sed 's/^/# /'; }
}
bad () { name=$1 part=$2; shift 2; check "$name" 2 "" "clustersim: *$part*" "$@"; }

check "overview" 0 "Usage: clustersim law SUBCOMMAND*optimal*" ""
check "help" 0 "Usage: clustersim law SUBCOMMAND*" "" --help
for sub in optimal loss overtrain train batch remarks fit check curve list; do
  check "$sub --help" 0 "*clustersim law $sub*Example:*clustersim law $sub*" "" "$sub" --help
  example=$("$program" law "$sub" --help | sed -n '/^Example:/{n;s/^ *clustersim law //;p;}')
  # shellcheck disable=SC2086
  check "$sub: its example" 0 "*" "" $example
done

# Figures: Chinchilla's point, and the units of a budget.
check "Chinchilla from its compute" 0 "*72.2 B*1.33 T*18.39*" "" optimal --flops 5.76e23
check "JSON" 0 '{*"command": "optimal"*"constants"*"optimum"*"notes"*}' "" optimal --flops 1e22 --format json
check "CSV" 0 "law,budget_flops,*optimum_params*besiroglu-2024,1e+22,*" "" optimal --flops 1e22 --format csv
check "days are GPU-seconds times peak times MFU" 0 "*,3.456e+20,*" "" \
  optimal --days 1 --gpus 8 --peak-tflops 1000 --mfu 0.5 --format csv
check "money is GPU-hours" 0 "*,3.456e+20,*" "" \
  optimal --usd 384 --usd-per-gpu-hour 2 --peak-tflops 1000 --mfu 0.5 --format csv
check "all laws" 0 "*hoffmann-2022-approach-1*llama-3-2024*" "" optimal --flops 1e22 --all
check "least compute for a loss" 0 "*2.475e+23*2.0000 nats*" "" optimal --loss 2.0
check "repeated data" 0 "*epochs*assumed: repeated tokens*" "" optimal --flops 1e22 --unique-tokens 10B
check "mixture of experts" 0 "*all parameters*" "" optimal --flops 1e22 --law moe --experts 8 --total-ratio 5
check "exact FLOPs" 0 "*exact over 6ND*1.035*" "" loss --model llama-2-70b --tokens 2T
check "the printed constants" 0 "*1.936? nats*" "" loss --params 70B --tokens 1.4T --law chinchilla-rounded
check "over-training by a ratio" 0 "*x optimal 4*" "" overtrain --flops 1e23 --ratio 4
check "days to a loss" 0 "*days*GPU-hours*money*" "" train gpt3-175b-a100 --loss 2.1 --usd-per-gpu-hour 2
check "learning rate" 0 "*sqrt*0.0004243*" "" batch --loss 2.5 --batch 4M --lr 3e-4 --base-batch 2M
check "seed is printed" 0 "*seed*42*" "" fit example-runs.csv --bootstrap 20 --seed 42
check "fitted law saved" 0 "*" "" fit example-runs.csv --bootstrap 20 --save "$tmp/own.json"
check "and used" 0 "*own: fit of own runs*" "" loss --law "$tmp/own.json" --params 1e9 --tokens 2e10
check "deviation found" 0 "*deviates*first step*69000*" "" check example-curve.csv --params 7e9 --anchor-tokens 20e9
check "as an exit status" 1 "*deviates*" "" check example-curve.csv --params 7e9 --fail
check "within 80 %" 0 "*within the threshold*" "" check example-curve.csv --params 7e9 --threshold 80
check "curve for the plot" 0 "series,series_number,kind,compute_flops,loss,params,tokens*run,*" "" \
  curve --from 1e20 --to 1e21 --runs example-runs.csv

# Calls.
bad "unknown sub-command" "nearest: optimal" optimall
bad "no budget" "budget is missing" optimal
bad "two budgets" "only one of" optimal --flops 1e22 --loss 2
bad "not a number" "--flops: not a number" optimal --flops lots
bad "no hexadecimal" "--flops: not a number" optimal --flops 0x10
bad "no nan" "--flops: not a number" optimal --flops nan
bad "negative" "out of range" optimal --flops=-1e22
bad "empty" "not a number" optimal --flops ""
bad "days without GPUs" "--gpus" optimal --days 3
bad "days without a GPU" "--gpu" optimal --days 3 --gpus 8
bad "unknown GPU" "nearest" optimal --days 3 --gpus 8 --gpu H10
bad "unknown law" "nearest: chinchilla" optimal --flops 1e22 --law chinchila
bad "a loss that no model has" "above 1.817" optimal --loss 1.5
bad "a batch at a loss that no model has" "no model gets to this loss*above 1.817" batch --loss 0.1
check "a law without a floor" 0 "*kaplan-2020-batch*critical*" "" batch --loss 1.5 --law kaplan-2020
check "a law of a frontier refuses no loss" 0 "*kaplan-2020-batch*" "" batch --loss 1.5 --law llama-3-2024
bad "a loss that this size has not" "above" train gpt3-175b-a100 --loss 1.82
bad "loss of a frontier" "best split" loss --params 1e9 --tokens 1e10 --law llama-3-2024
bad "total below active" "below the active" loss --params 1e9 --tokens 1e10 --total-params 1e8
bad "nothing known" "at least one of" batch
bad "lr without its batch" "belong together" batch --loss 2.5 --lr 1e-3
bad "from above to" "--from" curve --from 1e22 --to 1e20
bad "bad size" "--sizes" curve --sizes 1e9,x
bad "format" "--format" list --format xml

# Tables.
table () { printf '%b' "$1" >"$tmp/t.csv"; }
bad "no file" "none.csv" fit "$tmp/none.csv"
table ''
bad "empty file" "t.csv" fit "$tmp/t.csv"
table 'params,tokens,loss\n'
bad "only a header" "no rows" fit "$tmp/t.csv"
table 'params,tokens\n1,2\n'
bad "no column loss" "loss" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e9,2e10,2.5\n1e9,2e10\n'
bad "ragged" "t.csv:3" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e9,2e10,-2.5\n'
bad "negative loss" "t.csv:2: loss must be positive" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e9,many,2.5\n'
bad "text for a number" "t.csv:2" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e9,2e10,nan\n'
bad "nan in a run" "t.csv:2" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e9,2e10,2.5\n2e9,2e10,2.4\n'
bad "too few runs" "too few runs" fit "$tmp/t.csv"
table 'params,tokens,loss\n1e8,2e9,3.1\n2e8,4e9,2.9\n4e8,8e9,2.7\n8e8,16e9,2.6\n16e8,32e9,2.5\n32e8,64e9,2.4\n64e8,128e9,2.3\n'
bad "runs on one line" "one line" fit "$tmp/t.csv"
table 'step,tokens,loss\n1,0,2.5\n'
bad "no tokens" "t.csv:2: tokens must be positive" check "$tmp/t.csv" --params 1e9
table 'step,tokens,loss\n1,2e9,2.5\n2,4e9,nan\n'
check "a curve that diverged" 0 "*deviates*" "" check "$tmp/t.csv" --params 1e9
table 'step,tokens,loss\n1,1000,9.5\n'
check "nothing to judge" 0 "*no row is judged*" "" check "$tmp/t.csv" --params 1e9
table '{"format":1}'
mv "$tmp/t.csv" "$tmp/law.json"
bad "law file without its keys" "law.json:1" optimal --flops 1e22 --law "$tmp/law.json"
check "nowhere to write" 1 "" "clustersim: *" optimal --flops 1e22 -o "$tmp/none/x.txt"
echo "1..$n"
