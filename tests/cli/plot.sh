#!/bin/sh
# clustersim plot as a user calls it: exit status, one line of error, the picture in its place.
program=${CLUSTERSIM:-build/clustersim}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
n=0

# check NAME STATUS STDERR-PATTERN ARGS...
check () {
  name=$1 status=$2 wanted=$3
  shift 3
  n=$((n + 1))
  "$program" plot "$@" >"$folder/out" 2>"$folder/err"
  got=$?
  verdict="ok"
  [ "$got" -eq "$status" ] || verdict="not ok"
  # shellcheck disable=SC2254
  case $(cat "$folder/err") in $wanted) ;; *) verdict="not ok" ;; esac
  [ ! -s "$folder/out" ] || verdict="not ok"
  echo "$verdict $n - $name"
  [ "$verdict" = ok ] || { echo "# status $got"; sed 's/^/# /' "$folder/out" "$folder/err"; }
}

if command -v gnuplot >/dev/null; then
  for kind in scaling step memory fabric; do
    check "$kind" 0 "" "$kind" "tests/data/plot/$kind.csv" -o "$folder/$kind.svg" --title "It's $kind"
    n=$((n + 1))
    if [ -s "$folder/$kind.svg" ]; then echo "ok $n - $kind is there"; else echo "not ok $n - $kind is there"; fi
  done
  check "rows left out are told" 0 "*1 of 192 rows*left out" validate tests/data/plot/validate.csv -o "$folder/v.png"
  "$program" sweep gpt3-175b-a100 --vary 'cluster.gpus=512,1024;cluster.nodes=64,128' --vary parallel.tp=8,7 -o "$folder/s.csv"
  check "a sweep with points that have no answer" 0 "*3 of 4 rows*left out" scaling "$folder/s.csv" -o "$folder/s.svg"
  "$program" plan bert-large-dgx-a100 --format csv -o "$folder/p.csv"
  check "all layouts of a search" 0 "*rows have nothing to draw*" pareto "$folder/p.csv" -o "$folder/p.svg"
  check "quiet" 0 "" validate tests/data/plot/validate.csv -o "$folder/v.png" --quiet
  check "unwritable" 1 "clustersim: $folder/none/v.png: cannot be written*" \
    validate tests/data/plot/validate.csv -o "$folder/none/v.png" --quiet
else
  n=$((n + 1))
  echo "ok $n # SKIP gnuplot is not installed"
fi
check "no output named" 2 "clustersim: plot: where to? (missing: -o FILE.svg or -o FILE.png)" \
  scaling tests/data/plot/scaling.csv
check "unknown kind, before any file is read" 2 'clustersim: unknown kind of plot (found "stp"; nearest: step; *' \
  stp no-such-file.csv -o "$folder/a.svg"
check "no such table" 2 "clustersim: no-such-file.csv: cannot be opened*" step no-such-file.csv -o "$folder/a.svg"
check "another table" 2 'clustersim: tests/data/plot/memory.csv:1: column "label" is missing*' \
  step tests/data/plot/memory.csv -o "$folder/a.svg"
n=$((n + 1))
if [ ! -e "$folder/a.svg" ]; then echo "ok $n - nothing is left behind"; else echo "not ok $n - nothing is left behind"; fi
echo "1..$n"
