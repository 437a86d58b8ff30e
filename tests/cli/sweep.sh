#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# sweep: axes, keys that move together, ranges, points that cannot run, formats, output.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=gpt3-175b-a100

# lines NAME COUNT: of data in $out
lines () { [ "$(wc -l <"$out")" -eq $(($2 + 1)) ] && ok "$1" || nok "$1" "$(wc -l <"$out") lines"; }
same_fields () {
  [ "$(sed 's/"[^"]*"/q/g' "$out" | awk -F, '{ print NF }' | sort -u | wc -l)" -eq 1 ] && ok "$1" || nok "$1"
}

done_with "a list" sweep $s --vary train.global_batch_sequences=64,128
lines "two points" 2
head -1 "$out" | grep -q '^train\.global_batch_sequences,series,gpus,' && ok "the key is a column" || nok "the key is a column"
done_with "a product" sweep $s --vary train.recompute=full,selective --vary train.global_batch_sequences=64,128,256
lines "six points" 6
cut -d, -f1,2 "$out" | sed 1d | tr '\n' ' ' >"$tmp/order"
[ "$(cat "$tmp/order")" = "full,64 full,128 full,256 selective,64 selective,128 selective,256 " ] &&
  ok "the last axis is the fastest" || nok "the last axis is the fastest" "$(cat "$tmp/order")"
done_with "keys together and a range" sweep $s \
  --vary 'cluster.nodes=8..32*2;train.global_batch_sequences=64..256*2'
lines "three points" 3
awk -F, 'NR > 1 && $1 * 8 != $2 { bad = 1 } END { exit bad }' "$out" && ok "they move together" || nok "they move together"
awk -F'"' 'NR > 1 { split ($3, f, ","); print f[6] }' "$out" | awk 'NR == 1 { a = $1 } { if ($1 < 0.9 * a || $1 > 1.2 * a) bad = 1 } END { exit bad }' &&
  ok "weak scaling hardly changes the step" || nok "weak scaling hardly changes the step"

# A point that cannot run is a line with its reason.
done_with "an impossible point among others" sweep $s --vary parallel.tp=7,8 --series mine
lines "is a line too" 2
same_fields "of as many fields"
sed -n 2p "$out" | grep -q '^7,mine,,.*heads 96 is not divisible by tp 7' && ok "with its reason" || nok "with its reason"
sed -n 3p "$out" | grep -q '^8,mine,64,' && ok "and the other has its result" || nok "and the other has its result"
done_with "the same in JSON" sweep $s --vary parallel.tp=7,8 --format json
[ "$(wc -l <"$out")" -eq 2 ] && sed -n 1p "$out" | grep -q '"error":' && sed -n 2p "$out" | grep -q '"step_time_s":' &&
  ok "a line each" || nok "a line each"
i=0
while read -r line; do
  i=$((i + 1))
  echo "$line" > "$tmp/l.json"
  "$CLUSTERSIM" predict "$tmp/l.json" >/dev/null 2>"$err" </dev/null
  grep -Eq ': /[a-z_]+: (unknown key|missing)' "$err" && ok "line $i is JSON" || nok "line $i is JSON"
done <"$out"
refused "no point can run: the first reason is the error" 2 'tp 7' sweep $s --vary parallel.tp=7,9
refused "and in JSON" 2 'tp 7' sweep $s --vary parallel.tp=7,9 --format json
sim sweep $s --vary parallel.tp=7 -o "$tmp/none"
[ $rc -eq 2 ] && [ ! -e "$tmp/none" ] && ok "and no file" || nok "and no file"

# Each point is what predict gives.
sim predict $s --set train.global_batch_sequences=128 --format csv
sed -n 2p "$out" >"$tmp/one"
sim sweep $s --vary train.global_batch_sequences=128
sed -n 2p "$out" | sed 's/^128,//' | cmp -s - "$tmp/one" && ok "a point is a prediction" || nok "a point is a prediction"
# Points share the profiles that are given by name.
for gpu in A100-SXM-80GB H100-SXM-80GB; do
  for fabric in dgx-a100-hdr dgx-h100-ndr; do
    for mbs in 1 2; do
      "$CLUSTERSIM" predict $s --set cluster.gpu=$gpu --set cluster.fabric=$fabric \
        --set train.micro_batch_sequences=$mbs --set parallel.vpp=1 --set parallel.schedule=1f1b --format csv |
        sed -n 2p
    done
  done
done >"$tmp/each"
sim sweep $s --vary cluster.gpu=A100-SXM-80GB,H100-SXM-80GB --vary cluster.fabric=dgx-a100-hdr,dgx-h100-ndr \
  --vary train.micro_batch_sequences=1,2 --set parallel.vpp=1 --set parallel.schedule=1f1b
sed 1d "$out" | cut -d, -f4- | cmp -s - "$tmp/each" && ok "devices are shared rightly" || nok "devices are shared rightly"
sim sweep $s --vary parallel.tp=8 -o "$tmp/file"
[ $rc -eq 0 ] && [ ! -s "$out" ] && [ "$(wc -l <"$tmp/file")" -eq 2 ] && ok "-o FILE" || nok "-o FILE"
sim sweep $s --vary parallel.tp=8 --progress always
[ $rc -eq 0 ] && grep -q '1 of 1 points' "$err" && ok "progress on stderr" || nok "progress on stderr"
sim sweep $s --vary parallel.tp=8 --progress always --quiet
[ ! -s "$err" ] && ok "none when quiet" || nok "none when quiet"
done_with "values with an equals sign" sweep $s --vary name=a=b
done_with "a path as value" sweep $s --vary "model=$CLUSTERSIM_SCENARIOS/models/gpt3-175b.json,korthikanti-175b"
lines "two models" 2
done_with "no axis: one point" sweep $s
lines "one" 1

for bad in '' a = =1 parallel.tp= parallel.tp=1,,2 'parallel.tp=1,2;parallel.pp=1' parallel.tp=1..8 \
  parallel.tp=8..1\*2 parallel.tp=1..8\*1 parallel.tp=0..8\*2 parallel.tp=1..1e9+1 'parallel.tp=1;parallel.tp=2'
do
  refused "--vary '$bad'" 2 '^clustersim: --vary ' sweep $s --vary "$bad"
done
refused "a key twice" 2 'varied twice' sweep $s --vary parallel.tp=1 --vary parallel.tp=2
refused "too many points" 2 '100,000,000' sweep $s --vary a=1..100000+1 --vary b=1..100000+1
refused "an unknown --progress" 2 'progress' sweep $s --vary parallel.tp=8 --progress sometimes
finish
