#!/bin/sh
# shellcheck disable=SC2015,SC2086 # ok never fails; $plan is several words
# plan: killed and resumed, in shards, restricted, and refused: the same answer, or the reason.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
plan="plan llama-3-8b-h100 --set cluster.nodes=2 --set train.global_batch_sequences=64"

same () { cmp -s "$2" "$3" && ok "$1" || nok "$1" "$(cmp "$2" "$3" 2>&1)"; }
lines_of () { [ -e "$1" ] && wc -l <"$1" || echo 0; }
wait_for_lines () { # FILE COUNT PID
  while kill -0 "$3" 2>/dev/null && [ "$(lines_of "$1")" -lt "$2" ]; do sleep 0.01; done
}

for f in text json csv; do
  sim $plan --format $f -o "$tmp/whole.$f"
  [ $rc -eq 0 ] && [ -s "$tmp/whole.$f" ] && [ ! -e "$tmp/whole.$f.part" ] && ok "$f" || nok "$f" "status $rc"
done
grep -q '^the next, and why they lost' "$tmp/whole.text" && ok "losers" || nok "losers"
grep -q 'slower by [0-9.]* %: [a-z_]* [0-9.e-]* s more' "$tmp/whole.text" && ok "why they lost" || nok "why they lost"
grep -q 'the edge further on' "$tmp/whole.text" && ok "the edge" || nok "the edge"
# Every legal layout is in the CSV, and every one but the best has a reason.
listed=$(sed -n 's/^\([0-9]*\) legal layouts.*/\1/p' "$tmp/whole.text")
[ "$(wc -l <"$tmp/whole.csv")" -eq $((listed + 1)) ] && ok "all $listed layouts in the CSV" || nok "all $listed layouts in the CSV"
[ "$(grep -c ',$' "$tmp/whole.csv")" -eq 1 ] && ok "each with a reason" || nok "each with a reason"

# ---- killed five times ----
kills=0
for k in 1 2 3 4 5; do
  "$CLUSTERSIM" $plan --resume -o "$tmp/killed.text" >/dev/null 2>"$err" &
  pid=$!
  wait_for_lines "$tmp/killed.text.part" $((k * 8)) $pid
  kill -9 $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
done
before=$(($(lines_of "$tmp/killed.text.part") - 1))
[ $kills -gt 0 ] && [ $before -gt 0 ] && [ ! -e "$tmp/killed.text" ] && ok "killed $kills times, $before predictions kept" ||
  nok "killed" "$kills kills, $before predictions"
refused "an unfinished search is not thrown away" 2 'an unfinished plan is there' $plan -o "$tmp/killed.text"
refused "another search does not go on with it" 2 'is of another plan' $plan --set train.sequence_tokens=4096 --resume -o "$tmp/killed.text"
printf '+17 9' >>"$tmp/killed.text.part" # a line that was cut off
sim $plan --resume -o "$tmp/killed.text"
[ $rc -eq 0 ] && [ ! -e "$tmp/killed.text.part" ] && ok "resumed" || nok "resumed" "status $rc"
same "the answer is that of an uninterrupted search" "$tmp/whole.text" "$tmp/killed.text"
refused "no resume without a file" 2 'add -o FILE' $plan --resume

# ---- stopped ----
sim $plan --seconds 0.000001 --format json -o "$tmp/short.json"
[ $rc -eq 0 ] && grep -q '"complete": false' "$tmp/short.json" && [ -e "$tmp/short.json.part" ] &&
  ok "out of time: the best so far, to go on with" || nok "out of time" "status $rc"
sim $plan --resume --format json -o "$tmp/short.json"
same "and goes on" "$tmp/whole.json" "$tmp/short.json"
sim $plan --progress always
grep -q 'of [0-9]* layouts' "$err" && ok "progress" || nok "progress"

# ---- shards ----
for i in 1 2 3 4; do sim $plan --shard $i/4 -o "$tmp/s$i"; done
for f in text json csv; do
  sim $plan --format $f --merge "$tmp/s3" "$tmp/s1" "$tmp/s4" "$tmp/s2"
  same "four shards merged are the whole: $f" "$tmp/whole.$f" "$out"
done
refused "a missing shard" 1 '1 of 4 shards are missing, the first is 3' $plan --merge "$tmp/s1" "$tmp/s2" "$tmp/s4"
refused "a shard twice" 2 's1:[0-9]*: .*twice' $plan --merge "$tmp/s1" "$tmp/s1"
refused "another plan's shard" 2 's1:1: is of another plan' $plan --set train.sequence_tokens=4096 --merge "$tmp/s1"
head -3 "$tmp/s2" >"$tmp/cut"
refused "a shard that is cut off" 2 'cut:[0-9]*: the file is cut off' $plan --merge "$tmp/s1" "$tmp/cut"
for bad in 0/3 4/3 1 a/b; do refused "--shard $bad" 2 'shard' $plan --shard $bad; done

# ---- what a run reads is part of what it is ----
cp -R "$CLUSTERSIM_SCENARIOS" "$tmp/scenarios"
chmod -R u+w "$tmp/scenarios"
sed -n 's/.*"gpu": *"\([^"]*\)".*/\1/p' "$tmp/scenarios/train/llama-3-8b-h100.json" | head -1 >"$tmp/gpu"
profile=$tmp/scenarios/hw/$(cat "$tmp/gpu").json
(
  CLUSTERSIM_SCENARIOS=$tmp/scenarios
  export CLUSTERSIM_SCENARIOS
  "$CLUSTERSIM" $plan --seconds 0.000001 -o "$tmp/p.text" >/dev/null 2>&1
  "$CLUSTERSIM" sweep llama-3-8b-h100 --vary train.global_batch_sequences=4..80000+4 --jobs 1 -o "$tmp/p.csv" >/dev/null 2>&1 &
  pid=$!
  wait_for_lines "$tmp/p.csv.part" 3 $pid
  kill -9 $pid
  wait $pid 2>/dev/null
  printf '\n' >>"$profile" # not a number changes: the file is another one all the same
  "$CLUSTERSIM" $plan --resume -o "$tmp/p.text" 2>"$tmp/e1"
  "$CLUSTERSIM" sweep llama-3-8b-h100 --vary train.global_batch_sequences=4..80000+4 --jobs 1 --resume -o "$tmp/p.csv" 2>"$tmp/e2"
)
grep -q 'another plan' "$tmp/e1" && ok "plan: a profile that changed is another plan" || nok "plan: a changed profile"
grep -q 'another sweep' "$tmp/e2" && ok "sweep: a profile that changed is another sweep" || nok "sweep: a changed profile"

# ---- restricted ----
sim $plan --only schedule=1f1b --only recompute=none,full --only tp=2,4 --format csv
[ $rc -eq 0 ] && [ "$(awk -F, 'NR > 1 && ($7 != "1f1b" || $10 == "selective" || $1 == 1 || $1 == 8)' "$out" | wc -l)" -eq 0 ] &&
  ok "--only" || nok "--only"
refused "--only of nothing" 2 'keys: tp, cp' $plan --only foo=1
refused "--only of an unknown schedule" 2 'allowed: gpipe, 1f1b' $plan --only schedule=2f2b
refused "--by" 2 'allowed: time, cost, memory' $plan --by luck
sim $plan --by memory --top 2 --format json
[ $rc -eq 0 ] && grep -q '"order": "memory"' "$out" && ok "by memory" || nok "by memory"

# ---- refused in plain words ----
# "8-way tensor, 64-way pipeline and 16-way data parallel on 2,048 GPUs" multiplies to 8,192.
for c in predict plan; do
  refused "$c: a layout that does not fit the GPUs" 2 \
    '8-way tensor, 1-way context, 64-way pipeline and 16-way data parallel multiply to 8192 GPUs, the cluster has 2048 \(layouts that fit: tp 8 x cp 1 x pp 64 x dp 4, tp 8 x cp 1 x pp 16 x dp 16, tp 2 x cp 1 x pp 64 x dp 16\)' \
    $c gpt3-175b-h100 --set cluster.nodes=256 --set 'parallel={"tp":8,"pp":64,"dp":16}' --set train.global_batch_sequences=1536
done
refused "no layout fits" 2 'the smallest needs' plan gpt3-175b-h100 --set model=llama-3.1-405b --set cluster.nodes=1 --set 'parallel={"tp":8}'
# A scenario without a layout is planned, though data parallelism alone could not be.
cat >"$tmp/open.json" <<E
{ "format": 1, "name": "open", "model": "llama-3-8b",
  "cluster": { "gpu": "H100-SXM-80GB", "gpus_per_node": 8, "nodes": 4, "fabric": "ndr400-rail-8" },
  "train": { "sequence_tokens": 4096, "global_batch_sequences": 16 } }
E
fabric=$(sed -n 's/.*"fabric": *"\([^"]*\)".*/\1/p' "$CLUSTERSIM_SCENARIOS/train/llama-3-8b-h100.json" | head -1)
[ -z "$fabric" ] || sed -i "s/ndr400-rail-8/$fabric/" "$tmp/open.json"
sim plan "$tmp/open.json"
[ $rc -eq 0 ] && grep -q 'no layout that runs: global batch 16 is not a multiple' "$out" && ok "without a layout" || nok "without a layout" "status $rc"
finish
