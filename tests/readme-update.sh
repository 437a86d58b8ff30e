#!/bin/sh
# Writes the checked blocks of README.md and scenarios/published/README.md anew: the example's output, the accuracy tables,
# collectives by scale, and before them the file that ranges are made from.
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
# cell COLUMN SCENARIO FABRIC GPUS RANKS OP SIZE: one figure of collective's csv.
cell () {
  "$CLUSTERSIM" collective "$2" --set cluster.fabric="$3" --ranks "$5" --ranks-per-node "$4" --op "$6" --min "$7" --max "$7" \
    --format csv | awk -F, -v c="$1" 'NR == 2 { printf c == 2 ? "%.1f" : "%.0f", $c }'
}
# scale NAME SCENARIO FABRIC GPUS NODES...: a line for each number of nodes.
scale () {
  name=$1 scenario=$2 fabric=$3 gpus=$4
  shift 4
  for nodes in "$@"; do
    ranks=$((nodes * gpus))
    echo "| $name | $nodes | $ranks | $(cell 2 "$scenario" "$fabric" "$gpus" $ranks all_reduce 64K) |" \
      "$(cell 4 "$scenario" "$fabric" "$gpus" $ranks all_reduce 4G) |" \
      "$(cell 4 "$scenario" "$fabric" "$gpus" $ranks all_gather 4G) |" \
      "$(cell 4 "$scenario" "$fabric" "$gpus" $ranks alltoall 4G) |"
  done
}
{
  echo
  echo '| system | nodes or racks | GPUs | all_reduce 64 KiB, us | all_reduce 4 GiB, busbw GB/s | all_gather 4 GiB | alltoall 4 GiB |'
  echo '|---|---:|---:|---:|---:|---:|---:|'
  scale 'DGX H100, NDR' llama-3.1-405b-16k dgx-h100-ndr 8 1 2 4 8 16 128
  scale 'DGX B200, NDR' llama-3.1-405b-16k dgx-b200-ndr 8 1 2 4 8 16 128
  scale 'GB200 NVL72' nvl72-deepseek-v3 gb200-nvl72 72 1 2 4 8 16
  echo
} > "$tmp/scale"
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
{ sed -n '1,3p' "$tmp/cross"; grep '^| all rows ' "$tmp/cross"; echo; } > "$tmp/cross-all"
# The targets need all the measurements, which do not ship.
if [ -n "${CLUSTERSIM_SHARED:-}" ]; then
  echo
  echo '| what | target | measured | | rows, groups or sources |'
  echo '|---|---|---:|---|---:|'
  "$CLUSTERSIM" validate --all "$CLUSTERSIM_SHARED/data" |
    sed -n 's/^\(.*[^ ]\)  *\(at most [0-9.]* *%*\|at least [0-9.]* *%*\|[-0-9.]* to [0-9.]* *%*\)  *\([-0-9.]*\)  *\(holds\|missed by [0-9.]*\|no rows\)  *\([0-9]*\).*$/| \1 | \2 | \3 | \4 | \5 |/p' | sed 's/  *|/ |/g'
  echo
fi > "$tmp/targets"
# A block "<!-- NAME -->" to "<!-- end -->" becomes the file NAME, unless that is empty.
update () {
  awk -v tmp="$tmp" '
    /^<!-- [a-z-]+(:.*)? -->/ && !/<!-- end/ {
      name = $2; sub (/:.*/, "", name)
      print
      if ((getline line < (tmp "/" name)) > 0) {
        print line; while ((getline line < (tmp "/" name)) > 0) print line; skip = 1
      }
      next
    }
    /^<!-- end -->/ { skip = 0 }
    !skip { print }' "$1" > "$tmp/new"
  if [ "$2" = --check ]; then diff -u "$1" "$tmp/new"; else cp "$tmp/new" "$1"; fi
}
update README.md "${1:-}"
update scenarios/published/README.md "${1:-}"
