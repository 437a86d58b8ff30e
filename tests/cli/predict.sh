#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# predict: the three formats agree, JSON is JSON, --set and -o do what they say, traces are written.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=gpt3-175b-a100

# A file is JSON when the strict reader takes it for a scenario with unknown keys: what is no JSON is refused
# at an earlier step.
is_json () {
  "$CLUSTERSIM" predict "$1" >"$out" 2>"$err" </dev/null
  grep -Eq ': /[A-Za-z_]+: (unknown key|missing)' "$err"
}

done_with "text" predict $s
for word in 'step time' throughput MFU memory fits fingerprint 'where the time goes'; do
  grep -q "$word" "$out" && ok "text says $word" || nok "text says $word"
done
done_with "csv" predict $s --format csv
[ "$(wc -l <"$out")" -eq 2 ] && ok "csv: a header and a row" || nok "csv: a header and a row"
# Commas inside quotes do not count.
fields=$(sed 's/"[^"]*"/q/g' "$out" | awk -F, '{ print NF }' | sort -u | wc -l)
[ "$fields" -eq 1 ] && ok "csv: as many fields in both" || nok "csv: as many fields in both"
csv_step=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_time_s") k = i - NF }
                    NR == 2 { print $(NF + k) }' "$out")
done_with "json" predict $s --format json
cp "$out" "$tmp/p.json"
if is_json "$tmp/p.json"; then ok "json is JSON"; else nok "json is JSON"; fi
for key in name gpus parallel step_time_s step_time_interval_s tokens_per_s tokens_per_s_per_gpu \
  model_tflops_per_gpu mfu hfu mfu_convention breakdown_s memory model cost provenance fingerprint; do
  grep -q "^  \"$key\": " "$tmp/p.json" && ok "json has $key" || nok "json has $key"
done
json_step=$(sed -n 's/^  "step_time_s": \([^,]*\),*/\1/p' "$tmp/p.json")
echo "$json_step $csv_step" | awk '{ exit !($1 > 0 && ($1 - $2) / $1 < 1e-8 && ($2 - $1) / $1 < 1e-8) }' &&
  ok "json and csv have one step time" || nok "json and csv have one step time" "$json_step $csv_step"
sed -n '/"breakdown_s"/,/}/p' "$tmp/p.json" | sed -n 's/.*": \([0-9.e+-]*\),*$/\1/p' |
  awk -v t="$json_step" '{ s += $1; n++ } END { exit !(n == 11 && (s - t) / t < 1e-12 && (t - s) / t < 1e-12) }' &&
  ok "the eleven parts add up to the step" || nok "the eleven parts add up to the step"
"$CLUSTERSIM" predict $s --format json >"$tmp/again.json"
cmp -s "$tmp/p.json" "$tmp/again.json" && ok "same input, same bytes" || nok "same input, same bytes"

# --set
done_with "--set" predict $s --set train.global_batch_sequences=128 --set name=mine --format csv
grep -q '^mine,64,' "$out" && ok "--set of a word" || nok "--set of a word"
done_with "the later --set wins" predict $s --set name=a --set name=b --format csv
grep -q '^b,' "$out" && ok "it does" || nok "it does"
done_with "--set of a whole part" predict $s --set 'software=megatron-lm-2021'
grep -q 'megatron-lm-2021' "$out" && ok "it is used" || nok "it is used"
done_with "--set inside a part given by name" predict $s --set software.host_step_us.value=1e6
grep -q '^  host  *1\.[0-9]* s' "$out" && ok "is used" || nok "is used"
done_with "options after --" predict --format csv -- $s
done_with "the word help" help predict

# files
sim predict $s --format json -o "$tmp/o.json"
[ $rc -eq 0 ] && [ ! -s "$out" ] && cmp -s "$tmp/p.json" "$tmp/o.json" && ok "-o FILE" || nok "-o FILE"
echo old > "$tmp/keep"
sim predict $s --set parallel.tp=7 -o "$tmp/keep"
[ "$(cat "$tmp/keep")" = old ] && ok "an error leaves the old file" || nok "an error leaves the old file"
sim predict $s -o "$tmp/keep"
grep -q 'step time' "$tmp/keep" && ok "else it is replaced" || nok "else it is replaced"
cp "$CLUSTERSIM_SCENARIOS/train/$s.json" "$tmp/copy.json"
done_with "a file by its path" predict "$tmp/copy.json"

# traces
sim predict $s --trace "$tmp/t.json" --trace-ranks 0,7
if [ $rc -eq 0 ] && is_json "$tmp/t.json"
then ok "a trace for Perfetto"; else nok "a trace for Perfetto"; fi
sim predict $s --trace "$tmp/t.csv" --trace-ranks 0
spans=$(($(wc -l <"$tmp/t.csv") - 1))
[ $rc -eq 0 ] && [ $spans -gt 384 ] && ok "a trace as CSV: $spans spans" || nok "a trace as CSV: $spans spans"

# schedules from a file: a table that was printed, and one of another shape
cat > "$tmp/pipe.txt" <<'TABLE'
rank 0: 0F0 0F1 0B0 0B1
rank 1: 1F0 1B0 1F1 1B1
TABLE
pair="--set parallel.pp=2 --set parallel.vpp=1 --set cluster.nodes=2 --set train.global_batch_sequences=2"
for schedule in 1f1b gpipe; do
  # shellcheck disable=SC2086
  sim predict $s $pair --set parallel.schedule=$schedule --format csv
  cut -d, -f3-40 "$out" | sed 's/.*recompute",//' > "$tmp/$schedule.csv"
done
sed 's/"schedule": "interleaved",/"schedule_file": "pipe.txt",/' "$tmp/copy.json" > "$tmp/file.json"
# shellcheck disable=SC2086
done_with "a schedule from a file" predict "$tmp/file.json" $pair --format csv
cut -d, -f3-40 "$out" | sed 's/.*recompute",//' | cmp -s - "$tmp/1f1b.csv" &&
  ok "which is 1F1B, and predicts as that" || nok "which is 1F1B, and predicts as that"
refused "a schedule file of another shape" 2 'pipe\.txt: the table has 2 ranks' predict "$tmp/file.json"
echo 'rank 0: 0F0 0B0 0Q1' > "$tmp/pipe.txt"
refused "a schedule file with a typing error" 2 'pipe\.txt: .*(line )?1' predict "$tmp/file.json"
rm "$tmp/pipe.txt"
refused "a schedule file that is not there" 2 'pipe\.txt' predict "$tmp/file.json"
# ---- what an override makes of a published run; limits; a tree that is moved ----
done_with "as published" predict $s
grep -q '^published' "$out" && ok "the published number beside it" || nok "the published number beside it"
done_with "another run" predict $s --set train.global_batch_sequences=128
grep -q '^published' "$out" && nok "has no published number" || ok "has no published number"
refused "the limit of events, fast pass" 1 'limit of 10 events' predict $s --set run.max_events=10
refused "the limit of events, all events" 1 'limit of 10 events' predict $s --set run.max_events=10 --events
done_with "a name with control characters" predict $s --set 'name="a\u001b[31mb\nc"'
head -1 "$out" | grep -q 'a.u001b.31mb.nc' && ok "is made printable" || nok "is made printable"
mkdir -p "$tmp/moved/bin" "$tmp/moved/share/clustersim"
cp "$CLUSTERSIM" "$tmp/moved/bin/" && cp -r "$CLUSTERSIM_SCENARIOS" "$tmp/moved/share/clustersim/scenarios"
(cd "$tmp" && unset CLUSTERSIM_SCENARIOS && ./moved/bin/clustersim predict $s) >"$out" 2>"$err" </dev/null &&
  ok "an installed tree can be moved" || nok "an installed tree can be moved"
finish
