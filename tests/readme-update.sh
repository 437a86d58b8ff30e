#!/bin/sh
# Writes the checked blocks of README.md anew: the example's output, the accuracy tables, and before them the file that
# ranges are made from.
# With --check nothing is written; status 1 and a diff when they are out of date.
set -eu
: "${CLUSTERSIM:=build/clustersim}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ "${1:-}" = --check ] ||
  "$CLUSTERSIM" fit errors scenarios/published/runs.csv --quiet -o scenarios/published/errors.json > /dev/null
{ echo '```'; "$CLUSTERSIM" predict gpt3-175b-h100; echo '```'; } > "$tmp/example"
{
  echo
  echo '| source | rows | skipped | median | 90 % of rows below | mean signed |'
  echo '|---|---:|---:|---:|---:|---:|'
  "$CLUSTERSIM" validate scenarios/published/runs.csv --class A,B |
    sed -n 's/^ *\([0-9]\{1,\}\) *\([0-9]\{1,\}\) *\([0-9.]*\) *\([0-9.]*\) *\([0-9.]*\) *\([-+0-9.]*\)   \(.*\)$/| \7 | \1 | \2 | \3 | \4 | \6 |/p' |
    awk -F'|' '$3 + 0 > 0'
  "$CLUSTERSIM" validate scenarios/published/runs.csv --class A,B |
    sed -n 's/^mean of the groups.*$/\n&./p'
  echo
} > "$tmp/accuracy"
{
  echo
  echo '| group left out | rows | as shipped, median | left out, median | 90 % of rows below | mean signed |'
  echo '|---|---:|---:|---:|---:|---:|'
  for by in source gpu; do
    "$CLUSTERSIM" validate scenarios/published/runs.csv --class A,B --cross $by --quiet |
      sed -n 's/^ *\([0-9]\{1,\}\) *\([0-9.]*\) *[0-9.]* *[-+0-9.]* *[0-9.]* *\([0-9.]*\) *\([0-9.]*\) *\([-+0-9.]*\)   \(.*\)$/| \6 | \1 | \2 | \3 | \4 | \5 |/p' |
      awk -F'|' -v by=$by '$3 + 0 >= 5 && (by == "source" || $2 !~ /all rows/)'
  done
  echo
} > "$tmp/cross"
# The targets need all the measurements, which do not ship.
if [ -n "${CLUSTERSIM_SHARED:-}" ]; then
  echo
  echo '| what | target | measured | | rows, groups or sources |'
  echo '|---|---|---:|---|---:|'
  "$CLUSTERSIM" validate --all "$CLUSTERSIM_SHARED/data" |
    sed -n 's/^\(.*[^ ]\)  *\(at most [0-9.]* *%*\|at least [0-9.]* *%*\|[-0-9.]* to [0-9.]* *%*\)  *\([-0-9.]*\)  *\(holds\|missed by [0-9.]*\|no rows\)  *\([0-9]*\).*$/| \1 | \2 | \3 | \4 | \5 |/p' | sed 's/  *|/ |/g'
  echo
fi > "$tmp/targets"
awk -v tmp="$tmp" '
  /^<!-- example:/ { print; while ((getline line < (tmp "/example")) > 0) print line; skip = 1; next }
  /^<!-- accuracy -->/ { print; while ((getline line < (tmp "/accuracy")) > 0) print line; skip = 1; next }
  /^<!-- cross -->/ { print; while ((getline line < (tmp "/cross")) > 0) print line; skip = 1; next }
  /^<!-- targets -->/ && (getline line < (tmp "/targets")) > 0 {
    print; print line; while ((getline line < (tmp "/targets")) > 0) print line; skip = 1; next }
  /^<!-- end -->/ { skip = 0 }
  !skip { print }' README.md > "$tmp/README.md"
if [ "${1:-}" = --check ]; then
  diff -u README.md "$tmp/README.md"
else
  cp "$tmp/README.md" README.md
fi
