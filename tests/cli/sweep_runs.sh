#!/bin/sh
# shellcheck disable=SC2015,SC2086 # ok never fails; $sweep is several words
# sweep on several processes: the same bytes whatever the processes, the kills, the shards and the form of the result.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
points=6000
[ -z "$CLUSTERSIM_TEST_FULL" ] || points=20000
sweep="sweep llama-3-8b-h100 --vary train.global_batch_sequences=4..$((points * 2))+4 --vary train.micro_batch_sequences=1,3"
small="sweep llama-3-8b-h100 --vary train.global_batch_sequences=4..240+4"

same () { cmp -s "$2" "$3" && ok "$1" || nok "$1" "$(cmp "$2" "$3" 2>&1)"; }
lines_of () { [ -e "$1" ] && wc -l <"$1" || echo 0; }
wait_for_lines () { # FILE COUNT PID: until FILE has that many lines, or the process is gone
  while kill -0 "$3" 2>/dev/null && [ "$(lines_of "$1")" -lt "$2" ]; do sleep 0.01; done
}

sim $sweep --jobs 1 -o "$tmp/one.csv"
[ $rc -eq 0 ] && [ "$(wc -l <"$tmp/one.csv")" -eq $((points + 1)) ] && ok "one process" || nok "one process"
[ ! -e "$tmp/one.csv.part" ] && ok "leaves no journal" || nok "leaves no journal"
sim $sweep --jobs 3 -o "$tmp/three.csv"
same "three processes: the same file" "$tmp/one.csv" "$tmp/three.csv"
sim $sweep --jobs 3
same "and the same on stdout" "$tmp/one.csv" "$out"
sim $small --jobs 2 --format json -o "$tmp/two.jsonl"
sim $small --jobs 1 --format json
same "JSON lines" "$tmp/two.jsonl" "$out"

# ---- killed ten times ----
kills=0
for k in 1 2 3 4 5 6 7 8 9 10; do
  "$CLUSTERSIM" $sweep --jobs 2 --resume -o "$tmp/killed.csv" >/dev/null 2>"$err" &
  pid=$!
  wait_for_lines "$tmp/killed.csv.part" $((points * k / 30)) $pid
  sleep "0.00$((($$ + k * 7) % 10))"
  kill -9 $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
done
[ ! -e "$tmp/killed.csv" ] && [ $kills -eq 10 ] && ok "killed ten times" || nok "killed ten times" "$kills kills"
printf '+9999' >>"$tmp/killed.csv.part" # a line that was cut off
before=$(($(wc -l <"$tmp/killed.csv.part") - 1))
sim $sweep --jobs 2 --resume --progress always -o "$tmp/killed.csv"
[ $rc -eq 0 ] && [ ! -e "$tmp/killed.csv.part" ] && ok "resumed" || nok "resumed" "status $rc"
same "the result is that of an uninterrupted sweep" "$tmp/one.csv" "$tmp/killed.csv"
[ $before -gt $((points / 4)) ] && ok "and what was done was kept ($before of $points)" || nok "and what was done was kept" "$before"

# ---- Ctrl-C ----
"$CLUSTERSIM" $sweep --jobs 2 -o "$tmp/int.csv" >"$out" 2>"$err" &
pid=$!
wait_for_lines "$tmp/int.csv.part" 50 $pid
kill -TERM $pid
wait $pid
rc=$?
[ $rc -eq 1 ] && grep -q 'stopped after [0-9]* of '$points' points; the same command with --resume goes on' "$err" &&
  ok "stopped: says so, status 1" || nok "stopped: says so, status 1" "status $rc"
lines=$(($(wc -l <"$tmp/int.csv.part") - 1))
grep -q "after $lines of" "$err" && ok "whole lines only" || nok "whole lines only" "$lines lines"
refused "an unfinished sweep is not thrown away" 2 'unfinished sweep is there' $sweep -o "$tmp/int.csv"
refused "another sweep does not go on with it" 2 'another sweep' $small --resume -o "$tmp/int.csv"
sim $sweep --resume -o "$tmp/int.csv"
same "and goes on" "$tmp/one.csv" "$tmp/int.csv"
refused "no resume without a file" 2 'add -o FILE' $small --resume

# ---- shards ----
for i in 1 2 3; do
  sim $small --shard $i/3 -o "$tmp/s$i.csv"
  sim $small --shard $i/3 -o "$tmp/s$i.db"
  sim $small --shard $i/3 --format json -o "$tmp/s$i.jsonl"
done
sim $small -o "$tmp/all.csv"
sim sweep --merge "$tmp/s3.csv" "$tmp/s1.csv" "$tmp/s2.csv"
same "three shards merged are the whole" "$tmp/all.csv" "$out"
sim sweep --merge "$tmp/s1.jsonl" "$tmp/s2.jsonl" "$tmp/s3.jsonl" -o "$tmp/m.jsonl"
same "in JSON lines" "$tmp/two.jsonl" "$tmp/m.jsonl"
refused "a missing shard" 1 '20 of 60 points are missing, the first is 1' sweep --merge "$tmp/s1.csv" "$tmp/s3.csv"
refused "a shard twice" 2 's1\.csv:2: point 0 is there twice' sweep --merge "$tmp/s1.csv" "$tmp/s1.csv"
refused "no shard" 2 'all\.csv:1: no line of a shard' sweep --merge "$tmp/all.csv"
sim sweep llama-3-8b-h100 --vary train.global_batch_sequences=4..80+4 --shard 2/3 -o "$tmp/other.csv"
refused "shards of two sweeps" 2 'other\.csv:2: is of another sweep' sweep --merge "$tmp/s1.csv" "$tmp/other.csv"
refused "databases and text" 2 'databases and text' sweep --merge "$tmp/s1.csv" "$tmp/s2.db" -o "$tmp/x.db"
for bad in 0/3 4/3 1 1/2/3 a/b 1/0; do refused "--shard $bad" 2 'shard' $small --shard $bad; done
refused "--jobs -1" 2 'jobs' $small --jobs -1
sim $small --shard 70/80 -o "$tmp/empty.csv"
[ $rc -eq 0 ] && [ "$(wc -l <"$tmp/empty.csv")" -eq 1 ] && ok "a shard without points" || nok "a shard without points"

# As sim/examples/README.md has it.
if command -v parallel >/dev/null; then
  (cd "$tmp" && seq 4 | parallel --will-cite -j2 "$CLUSTERSIM" $small --shard {}/4 --jobs 1 --resume -o part-{}.csv) >"$out" 2>"$err"
  sim sweep --merge "$tmp"/part-?.csv
  same "GNU parallel" "$tmp/all.csv" "$out"
else
  skip "GNU parallel" "no parallel here"
fi

# ---- SQLite ----
sim $small --jobs 2 -o "$tmp/all.db"
[ $rc -eq 0 ] && [ -s "$tmp/all.db" ] && [ ! -e "$tmp/all.db.part" ] && ok "a database" || nok "a database"
sim sweep --merge "$tmp/s1.db" "$tmp/s2.db" "$tmp/s3.db" -o "$tmp/m.db"
[ $rc -eq 0 ] && ok "shards that are databases" || nok "shards that are databases"
refused "a database has no --format" 2 'format' $small --format json -o "$tmp/y.db"
refused "a missing database" 1 'points are missing' sweep --merge "$tmp/s1.db" -o "$tmp/x.db"
[ ! -e "$tmp/x.db" ] && ok "and no file" || nok "and no file"
"$CLUSTERSIM" $sweep --jobs 2 -o "$tmp/k.db" >/dev/null 2>"$err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ ! -s "$tmp/k.db.part-wal" ]; do sleep 0.01; done
sleep 0.05
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
sim $sweep --jobs 2 --resume -o "$tmp/k.db"
[ $rc -eq 0 ] && ok "a killed database goes on" || nok "a killed database goes on"
if command -v sqlite3 >/dev/null; then
  rows () { sqlite3 -csv "$1" 'SELECT point, gpus, step_time_s, series, error FROM results ORDER BY point'; }
  rows "$tmp/all.db" >"$tmp/all.rows"
  rows "$tmp/m.db" >"$tmp/m.rows"
  [ "$(wc -l <"$tmp/all.rows")" -eq 60 ] && ok "60 rows" || nok "60 rows"
  same "merged: the same rows" "$tmp/all.rows" "$tmp/m.rows"
  [ "$(sqlite3 "$tmp/k.db" 'SELECT count(*), count(error) FROM results')" = \
    "$points|$(grep -c '[^,]$' "$tmp/one.csv" | awk '{ print $1 - 1 }')" ] &&
    ok "after the kill: each point once" || nok "after the kill: each point once"
  a=$(awk -F'"' 'NR == 2 { split ($3, f, ","); print f[6] }' "$tmp/all.csv")
  b=$(sqlite3 "$tmp/all.db" 'SELECT step_time_s FROM results WHERE point = 0')
  [ "$a" = "$b" ] && ok "the numbers of the CSV" || nok "the numbers of the CSV" "$a $b"
else
  skip "the rows of databases" "no sqlite3 here"
fi

# ---- errors ----
refused "nothing can run: no file, no journal" 2 'tp 7' sweep gpt3-175b-a100 --vary parallel.tp=7,9 --jobs 2 -o "$tmp/none.csv"
[ -z "$(find "$tmp" -name 'none*')" ] && ok "nothing stays" || nok "nothing stays"
"$CLUSTERSIM" $sweep --jobs 2 -o "$tmp/lock.csv" >/dev/null 2>&1 &
pid=$!
wait_for_lines "$tmp/lock.csv.part" 1 $pid
refused "two sweeps into one file" 1 'another sweep is writing it' $sweep --resume -o "$tmp/lock.csv"
kill -9 $pid
wait $pid 2>/dev/null
[ -n "$SANITIZED" ] || {
  # Flat memory: ten times the points, hardly more of it.
  peak () { "$@" & p=$!; m=0; while kill -0 $p 2>/dev/null; do r=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$p/status 2>/dev/null)
    [ "${r:-0}" -gt $m ] && m=$r; sleep 0.02; done; wait $p; echo $m; }
  a=$(peak "$CLUSTERSIM" $small --jobs 1 -o "$tmp/p.csv")
  b=$(peak "$CLUSTERSIM" $sweep --jobs 1 -o "$tmp/p.csv")
  [ "$a" -gt 0 ] && [ "$b" -lt $((a + 40960)) ] && ok "flat memory ($a kB for 60 points, $b kB for $points)" ||
    nok "flat memory" "$a kB for 60 points, $b kB for $points"
}
finish
