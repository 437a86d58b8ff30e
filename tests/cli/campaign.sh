#!/bin/sh
# campaign as a user calls it: formats, the example of --help, tables for plot, going on after a stop, and
# wrong input: one line, nothing on stdout.
. tests/cli/lib.inc

few="--replicas 12 --quiet"
# shellcheck disable=SC2086
{
done_with "text" campaign llama-3-405b $few
grep -q "^Goodput" "$out" && ok "text says goodput" || nok "text says goodput"
done_with "json" campaign llama-3-405b $few --format json
grep -q '"wasted_progress"' "$out" && ok "json has causes" || nok "json has causes"
cp "$out" "$tmp/first.json"
done_with "json again" campaign llama-3-405b $few --format json
cmp -s "$out" "$tmp/first.json" && ok "same seed, same bytes" || nok "same seed, same bytes"
done_with "csv" campaign llama-3-405b $few --format csv
[ "$(wc -l <"$out")" -eq 2 ] && ok "csv: a header and a line" || nok "csv: a header and a line"
example=$("$CLUSTERSIM" campaign --help | sed -n '/^Example:/{n;s/^ *clustersim //;p;}')
done_with "the example of --help" $example --quiet
done_with "curve checkpoint" campaign rsc-1-12000 $few --curve checkpoint
done_with "curve goodput" campaign rsc-1-12000 $few --curve goodput
done_with "curve sensitivity" campaign rsc-1-12000 $few --curve sensitivity
done_with "curve cost" campaign opt-175b $few --curve cost --gpus 512,1024
[ "$(wc -l <"$out")" -eq 3 ] && ok "cost: a line a size" || nok "cost: a line a size"
[ "$(grep -c '^"OPT-175B, A100",' "$out")" -eq 2 ] && ok "cost: the series names no size" || nok "cost: the series names no size"
done_with "best interval in place" campaign rsc-1-12000 $few --set job.checkpoint.interval_s=best
done_with "spares" campaign infinitehbd-spares $few --spares
done_with "a trace" campaign infinitehbd-spares $few --set job.failures=infinitehbd-trace

# Spares idle: thirty times as many of them do not change what computing takes, only what idling does.
energy () { # SPARES KEY
  sim campaign llama-3-405b --replicas 4 -q --format json --set job.spares.hot="$1"
  sed -n "s/^ *\"$2\": \([0-9.]*\).*/\1/p" "$out" | cut -d. -f1
}
few_kwh=$(energy 64 kwh_compute) many_kwh=$(energy 2048 kwh_compute) idle_kwh=$(energy 2048 kwh_idle)
[ $((many_kwh * 100)) -lt $((few_kwh * 101)) ] && ok "spares do not compute" ||
  nok "spares do not compute" "$few_kwh, $many_kwh"
[ "$idle_kwh" -gt $((few_kwh / 10)) ] && ok "spares idle" || nok "spares idle" "$idle_kwh"

# A stopped campaign goes on: 12 runs in one go, or 5 and then the rest, are the same.
done_with "whole" campaign llama-3-405b $few --runs "$tmp/whole.csv" --format csv
cp "$out" "$tmp/whole.out"
sim campaign llama-3-405b --replicas 5 --quiet --runs "$tmp/part.csv"
printf 'cut off in the mid' >>"$tmp/part.csv"
done_with "resumed" campaign llama-3-405b $few --runs "$tmp/part.csv" --resume --format csv
cmp -s "$tmp/whole.csv" "$tmp/part.csv" && ok "the same replicas" || nok "the same replicas"
cmp -s "$out" "$tmp/whole.out" && ok "the same result" || nok "the same result"
refused "another campaign's replicas" 2 "not a replica of this campaign" \
  campaign llama-3-405b $few --seed 7 --runs "$tmp/part.csv" --resume
refused "resume without a file" 2 "missing: --runs" campaign llama-3-405b --resume

refused "negative rate" 2 "out of range .found -1" \
  campaign llama-3-405b --set job.failures.rates_per_1000_node_days.gpu=-1
refused "interval 0" 2 "interval_s: out of range .found 0" \
  campaign llama-3-405b --set job.checkpoint.interval_s=0
refused "restart longer than the time between failures" 2 "shorter than the restart" \
  campaign llama-3-405b --set job.restart.init_s=20000
refused "never finished" 2 "can never finish" campaign llama-3-405b --set job.checkpoint.interval_s=1e6
refused "a price of nothing" 2 "price of nothing" campaign llama-3-405b --set job.prices.usd_per_gpu_hour=0
refused "unknown profile" 2 "nearest: llama-3" campaign llama-3-405b --set job.failures=llama3
refused "unknown key" 2 "nearest: checkpoint" campaign llama-3-405b --set job.chekpoint.interval_s=5
refused "nothing to do" 2 "tokens, work_days or days" campaign llama-3-405b --set job.days=null
refused "no replicas" 2 "replicas: out of range" campaign llama-3-405b --replicas 0
refused "unknown curve" 2 "curve: unknown name" campaign llama-3-405b --curve u
refused "cost of a span of time" 2 "need an amount of work" campaign llama-3-405b --curve cost

for half in spares.hot spares.cold checkpoint.keep checkpoint.every; do
  refused "half of one: $half" 2 "$half" campaign llama-3-405b --set job.$half=1.5
done

# One run has no interval of its mean.
sim campaign llama-3-405b --replicas 1 -q
grep -q "interval of the mean unknown" "$out" && ok "one run: unknown" || nok "one run: unknown"
sim campaign llama-3-405b --replicas 1 -q --format json
grep -A3 '"interval_95"' "$out" | head -3 | grep -q null && ok "one run: null" || nok "one run: null"
sim campaign llama-3-405b --replicas 1 -q --format csv
tail -1 "$out" | grep -Eq ',0\.[0-9]+,,,0\.' && ok "one run: empty cells" || nok "one run: empty cells"
sim campaign llama-3-405b --replicas 1 -q --curve goodput
grep -q 'useful_work,[0-9.]*,,$' "$out" && ok "one run: empty in the table" || nok "one run: empty in the table"

sim campaign llama-3-405b --replicas 5 -q --set job.work_days=50 --set job.days=40
grep -q "^Unfinished: 5 of 5 .*of the 50.00 days of work" "$out" && ok "cut off is said" || nok "cut off is said"
refused "no spares" 1 "never finish: .*there are no spares" campaign llama-3-405b --replicas 5 \
  --set job.days=null --set job.work_days=50 --set job.spares.hot=0
sim campaign llama-3-405b --replicas 2 -q
grep -q "^Published at least 90.00" "$out" && ok "the bound of a published number" || nok "the bound of a published number"

sim campaign ft-hsdp-before --best --replicas 8 -q
grep -q "not bracketed: goodput still rises" "$out" && ok "no optimum is claimed" || nok "no optimum is claimed"

sim campaign llama-3-405b --replicas 2 -q --set job.work_days=2 --curve cost --gpus 8,8192,16384
[ "$(sed 1d "$out" | awk -F, '{ print $(NF - 1) }' | tr '\n' ' ')" = "1 32 64 " ] &&
  ok "spares grow with the job" || nok "spares grow with the job"
refused "not whole nodes" 2 "no whole nodes .found 100 GPUs" \
  campaign opt-175b --replicas 2 -q --curve cost --gpus 100
refused "a run of centuries" 2 "allowed: up to 100000 days" \
  campaign 100k-90-days --replicas 2 -q --set job.work_days=90 --curve cost --gpus 8

refused "unknown name" 2 "bloom-176b-a100.*100k-90-days" campaign nosuch
echo '{ "format": 1, "cluster": { "gpus_per_node": 8, "nodes": 4 }, "job": { "days": 3 } }' >"$tmp/bare.json"
refused "a missing key is the scenario's" 2 "bare.json:1: /job: .*is missing" campaign "$tmp/bare.json"

trace () { # NAME PATTERN LINES...
  name=$1 want=$2
  shift 2
  printf '%s\n' "$@" >"$tmp/trace.csv"
  printf '{ "extends": "common", "trace": { "file": "%s", "nodes": 400, "days": 30 } }' "$tmp/trace.csv" \
    >"$tmp/profile.json"
  refused "$name" 2 "$want" campaign infinitehbd-spares $few --set job.failures="$tmp/profile.json"
}
trace "empty trace" "no failures" "start_day,end_day,node,class"
trace "dates out of order" "out of order" "start_day,end_day,node,class" "3,4,0,GPU" "2,3,0,GPU"
trace "an end before its start" "end is before the start" "start_day,end_day,node,class" "3,2,0,GPU"
trace "not a date" "not a date" "date,node,cause" "2024-13-45,0,gpu"
trace "half of a node" "not a node's number" "start_day,end_day,node,class" "2,3,1.5,GPU"
trace "no column of dates" "start_day" "node,cause" "0,gpu"
printf '%s\n' "start_day,end_day,node,class" "1,2,0,GPU" "2,3,1,gremlins" "3,4,2,unknown" "4,5,3,gnomes" >"$tmp/trace.csv"
sim campaign infinitehbd-spares --replicas 3 --set job.failures="$tmp/profile.json"
[ $rc -eq 0 ] && [ "$(wc -l <"$err")" -eq 1 ] && grep -q 'warning: .*count as unknown (2 of them, first "gremlins" in line 3)' "$err" &&
  ok "causes in unknown words are told" || nok "causes in unknown words are told"
sim campaign infinitehbd-spares $few --quiet --set job.failures="$tmp/profile.json"
[ $rc -eq 0 ] && [ ! -s "$err" ] && ok "--quiet" || nok "--quiet"
}
finish
