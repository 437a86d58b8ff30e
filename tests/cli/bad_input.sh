#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# Wrong input at the command line: status 2, nothing on stdout, one line on stderr that tells file, line and
# path. Each key of a shipped scenario is removed, mistyped and made absurd in turn; then files that are no
# scenario at all, and layouts that cannot be.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=gpt3-175b-a100
good=$tmp/good.json bad=$tmp/bad.json
spread "$CLUSTERSIM_SCENARIOS/train/$s.json" |
  sed 's/^"nodes": 8,/"nodes": 8,\n"price_usd_per_gpu_hour": 2.5,\n"node_power_W": 6500,\n"pue": 1.2,/' |
  sed 's/^"published"/"run": {\n"fidelity": "analytic",\n"seed": 3,\n"max_events": 1000000,\n"exact_events": false\n},\n"published"/' >"$good"
done_with "the scenario that all others are made of" predict "$good"
place='bad\.json:[0-9]+: /[a-zA-Z_/0-9]*: '

# value LINE: its scalar value without the comma, or nothing.
value () { sed -n "$1s/^\"[a-zA-Z_]*\": \([^{[].*\)\$/\1/p" "$good" | sed 's/,$//'; }
key () { sed -n "$1s/^\"\([a-zA-Z_]*\)\": .*/\1/p" "$good"; }
# with LINE VALUE: the scenario with that value there.
with () {
  awk -v line="$1" -v new="$2" 'NR == line { comma = /,$/ ? "," : ""; sub (/: .*/, ": "); print $0 new comma; next } { print }' \
    "$good" >"$bad"
}
# without LINE: the scenario without it, and without the comma that would be too many.
without () {
  awk -v line="$1" 'NR != line { if (held != "") { if ($0 ~ /^}/) sub (/,$/, "", held); print held } held = $0 }
                    END { print held }' "$good" >"$bad"
}

total=$(wc -l <"$good")
line=0
while [ $line -lt "$total" ]; do
  line=$((line + 1))
  k=$(key $line)
  v=$(value $line)
  [ -n "$k" ] || continue
  # Removed: an error where it must be there, else a run with a default or a layout that cannot be.
  if [ -n "$v" ]; then
    without $line
    case $k in
    format | gpu | gpus_per_node | nodes | fabric | model | sequence_tokens | global_batch_sequences | step_time_s | source)
      refused "$k removed" 2 "/$k: .*missing|/$k: .*required|$k" predict "$bad"
      grep -Eq "$place" "$err" && ok "$k removed: place" || nok "$k removed: place" ;;
    *)
      sim predict "$bad"
      if [ $rc -eq 0 ] && [ ! -s "$err" ]; then ok "$k removed: has a default"
      else refused "$k removed: no layout" 2 "$place" predict "$bad"; fi ;;
    esac
  fi
  # Another type.
  case $v in
  \"*) with $line 17 ;;
  '') # an object
    for a in 17 '[]' '"x"' true; do
      refused "$k is $a" 2 "/$k: .*type|name" predict "$good" --set "$k=$a"
    done
    continue ;;
  *) with $line '"seventeen"' ;;
  esac
  refused "$k mistyped" 2 "$place.*(type|name)" predict "$bad"
  # Absurd values of the right type.
  case $v in
  \"*) absurd='"no-such-thing" ""' ;;
  true | false) absurd='"yes" 2' ;;
  *) absurd='-1 1e30 1e999 -0.5' ;;
  esac
  for a in $absurd; do
    case $k$a in name* | source*) continue ;; esac # any text will do
    with $line "$a"
    refused "$k is $a" 2 "$place" predict "$bad"
  done
  # A key misspelt, and one given twice.
  sed "$line""s/\"$k\"/\"${k}z\"/" "$good" >"$bad"
  refused "$k misspelt" 2 "$place.*unknown key|/$k: .*missing" predict "$bad"
  awk -v line=$line 'NR == line && $0 !~ /\{$/ { l = $0; sub (/,$/, "", l); print l ","; print $0; next } { print }' "$good" >"$bad"
  refused "$k twice" 2 "$place.*(twice|duplicate)" predict "$bad"
done

# ---- files that are no scenario ----
# text NAME PATTERN CONTENT
text () {
  printf '%b' "$3" >"$bad"
  refused "$1" 2 "$2" predict "$bad"
}
text "nothing" 'bad\.json:1: ' ''
text "blanks" 'bad\.json:[0-9]+: ' ' \n\n '
text "a word" 'bad\.json:1: ' 'scenario'
text "a number" 'bad\.json:1: .*object' '17'
text "an array" 'bad\.json:1: .*object' '[]'
text "a string" 'bad\.json:1: .*object' '"x"'
text "an open brace" 'bad\.json:1: ' '{'
text "an open string" 'bad\.json:1: ' '{"format'
text "no colon" 'bad\.json:2: ' '{\n"format" 1}'
text "a comma too many" 'bad\.json:2: ' '{"format": 1,\n}'
text "two values" 'bad\.json:2: ' '{}\n{}'
text "a comment" 'bad\.json:1: ' '// x\n{}'
text "NaN" 'bad\.json:1: /format: .*NaN' '{"format": NaN}'
text "Infinity" 'bad\.json:1: /format: .*Infinity' '{"format": Infinity}'
text "minus Infinity" 'bad\.json:1: /format: ' '{"format": -Infinity}'
text "1e999" 'bad\.json:1: /format: ' '{"format": 1e999}'
text "hexadecimal" 'bad\.json:1: /format: ' '{"format": 0x1}'
text "a leading zero" 'bad\.json:1: ' '{"format": 01}'
text "single quotes" 'bad\.json:1: ' "{'format': 1}"
text "no UTF-8" 'bad\.json:1: ' '{"format": "\0377"}'
text "a NUL" 'bad\.json:1: ' '{"format"\0000: 1}'
text "a control character" 'bad\.json:1: ' '{"a\tb": 1}'
text "half a surrogate" 'bad\.json:1: ' '{"name": "\\ud800"}'
text "a byte order mark alone" 'bad\.json:1: ' '\0357\0273\0277'
text "empty object" '/format: ' '{}'
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "["; print "" }' >"$bad"
refused "nested 10,000 deep" 2 'bad\.json:1: .*deep' predict "$bad"
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "{\"a\":"; print "" }' >"$bad"
refused "objects nested 10,000 deep" 2 'bad\.json:1: .*deep' predict "$bad"
truncate -s 100M "$bad"
refused "a sparse file of 100 MB" 2 'bad\.json: too big' predict "$bad"
rm "$bad"
awk 'BEGIN { printf "{\"format\": 1, \"name\": \""; for (i = 0; i < 100000; i++) printf "xxxxxxxxxx"; print "\", \"modle\": 1}" }' >"$bad"
refused "a name of a million letters" 2 'modle' predict "$bad"
[ "$(wc -c <"$err")" -lt 2000 ] && ok "a short message all the same" || nok "a short message all the same"
printf '{ "extends": "bad.json" }' >"$bad"
refused "a file that extends itself" 2 'bad\.json:1: /extends: ' predict "$bad"
printf '{ "extends": "nowhere.json" }' >"$bad"
refused "a file that extends none" 2 'bad\.json:1: /extends: .*nowhere' predict "$bad"
printf '{ "extends": "%s", "parallel": null, "cluster": null }' "$good" >"$bad"
refused "no cluster left" 2 'cluster' predict "$bad"

# ---- parts that are not there ----
for part in cluster.gpu=A101 cluster.fabric=infinibland model=gpt5 software=megatron-2030 \
  cluster.gpu=nowhere.json model=./nowhere.json 'model={"hf_config":"nowhere.json"}' \
  parallel.schedule_file=nowhere.txt model=17 'model={}' 'cluster.gpu={}' 'software=[]'; do
  path=$(echo "${part%%=*}" | tr . /)
  refused "--set $part" 2 "/${path%_file}|nowhere" predict $s --set "$part"
done
# The nearest name is offered.
refused "a misspelt GPU" 2 'nearest: A100-SXM-80GB' predict $s --set cluster.gpu=A100-SXM-80Gb
refused "a misspelt key" 2 'micro_batch_sequences' predict $s --set train.micro_batch_sequence=2
refused "a misspelt schedule" 2 'interleaved' predict $s --set parallel.schedule=interleafed

# ---- layouts that cannot be ----
for set in parallel.tp=7 parallel.tp=0 parallel.tp=-8 parallel.tp=1.5 parallel.tp=1e18 parallel.tp=9007199254740993 \
  parallel.pp=97 parallel.pp=7 parallel.vpp=13 parallel.vpp=0 parallel.cp=3 parallel.cp=2 parallel.dp=2 parallel.ep=2 \
  parallel.etp=2 parallel.zero_stage=4 parallel.shard_size=-1 parallel.schedule=zb-v parallel.schedule=dualpipe \
  train.global_batch_sequences=63 train.global_batch_sequences=60 train.micro_batch_sequences=5 \
  train.sequence_tokens=2047 train.sequence_tokens=0 train.precision=int8 train.precision=fp8 \
  train.recompute=some cluster.nodes=7 cluster.gpus=63 cluster.gpus=65 cluster.nodes=1e7 cluster.gpus_per_node=0 \
  run.fidelity=packet run.seed=-1 run.seed=1e20 train.sequence_tokens=100000000; do
  case $set in cluster*) at='/(cluster|parallel)/' ;; *) at="/$(echo "${set%%=*}" | cut -d. -f1)" ;; esac
  refused "--set $set" 2 "$at" predict $s --set "$set"
done
refused "one pipeline rank with two chunks" 2 '/parallel/vpp: ' predict $s --set parallel.pp=1 --set parallel.vpp=2
for set in '' = =1 parallel.tp .tp=1 parallel.=1 parallel..tp=1 parallel.tp.x=1 xyz=1 parallel.xyz=1 'parallel={' 'parallel=' \
  'name="x' run.seed=NaN run=1 'parallel=[1]'; do
  refused "--set '$set'" 2 '' predict $s --set "$set"
done

# ---- tables ----
t=$tmp/bad.csv
# table NAME PATTERN CONTENT
table () {
  printf '%b' "$3" >"$t"
  refused "$1" 2 "$2" validate "$t"
}
table "an empty table" 'bad\.csv' ''
table "a table of something else" 'bad\.csv:1: .*column' 'a,b,c\n1,2,3\n'
table "a row that is too short" 'bad\.csv:2' 'num_layers,tp,pp,gbs,gpu,num_gpus\n1,2\n'
table "an open quote" 'bad\.csv:[12]' 'num_layers,tp,pp,gbs,gpu,num_gpus\n"1,2,3,4,5,6\n'
table "a column twice" 'bad\.csv:1' 'num_layers,tp,pp,gbs,gpu,num_gpus,tp\n1,2,3,4,5,6,7\n'
runs=$CLUSTERSIM_SCENARIOS/published/runs.csv
refused "a column that is not there" 2 'colour' validate "$runs" --where 'colour~red'
refused "a condition without a column" 2 'COLUMN~REGEX' validate "$runs" --where red
refused "a damaged expression" 2 '' validate "$runs" --where 'gpu~('
refused "groups by a column that is not there" 2 'colour' validate "$runs" --group colour
finish
