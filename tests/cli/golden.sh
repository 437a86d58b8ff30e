#!/bin/sh
# Reports of the shipped scenarios are those of tests/golden, byte for byte, from the fast pass; and the
# event engine gives the same step, in any order of ties. A scenario without a golden report fails.
: "${CLUSTERSIM:=build/clustersim}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
set -- scenarios/train/*.json
echo "1..$(($# * 3))"
n=0
ok () { n=$((n + 1)); echo "ok $n - $1"; }
nok () { n=$((n + 1)); echo "not ok $n - $1"; }
step_of () { sed -n 's/^  "step_time_s": //p; /"breakdown_s"/,/}/p' "$1"; }
for f do
  name=$(basename "$f" .json)
  "$CLUSTERSIM" predict "$f" --format json > "$tmp/$name.json" 2> "$tmp/err" &&
    "$CLUSTERSIM" predict "$f" > "$tmp/$name.txt" 2>> "$tmp/err"
  if cmp -s "$tmp/$name.json" "tests/golden/$name.json" && cmp -s "$tmp/$name.txt" "tests/golden/$name.txt"
  then ok "$name equals its golden report"
  else
    nok "$name equals its golden report (make golden-update rewrites it)"
    diff -u "tests/golden/$name.json" "$tmp/$name.json" | sed 's/^/# /' | head -20
  fi
  "$CLUSTERSIM" predict "$f" --events --format json > "$tmp/events.json"
  step_of "$tmp/events.json" > "$tmp/a"
  step_of "$tmp/$name.json" > "$tmp/b"
  if [ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b"
  then ok "$name: the event engine gives the same step"; else nok "$name: the event engine gives the same step"; fi
  "$CLUSTERSIM" predict "$f" --shuffle-ties --seed 7 --format json > "$tmp/shuffled.json"
  step_of "$tmp/shuffled.json" > "$tmp/a"
  if [ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b"
  then ok "$name: in any order of ties"; else nok "$name: in any order of ties"; fi
done
