#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# validate: what a row states wrongly is told as it stands, and no rows is no success.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
table=$CLUSTERSIM_SCENARIOS/published/runs.csv

done_with "a table" validate "$table" --class A --where 'gpu~A100' --format json
refused "a class that no row has" 2 'no row to predict' validate "$table" --class Z
head -1 "$table" >"$tmp/empty.csv"
refused "a header alone" 2 'no row to predict' validate "$tmp/empty.csv"
refused "an expression" 2 '--where gpu~\[' validate "$table" --where 'gpu~['

# One row of a copy, with one cell changed: COLUMN VALUE PATTERN-OF-THE-REASON.
cat >"$tmp/row.csv" <<'T'
id,class,model,hidden,num_layers,heads,kv_heads,ffn_hidden,vocab,seq_len,gpu,num_gpus,gpus_per_node,interconnect,framework,year,tp,pp,gbs,mbs,precision,recompute,seq_parallel,step_time_s
r,A,GPT,4096,24,32,32,16384,51200,2048,A100-80GB,64,8,,Megatron-LM,2022,8,2,64,4,bf16,none,1,2.5
T
cell_of () { awk -F, -v OFS=, -v c="$2" -v v="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i }
  NR == 2 { $k = v } { print }' "$1"; }
done_with "the row as it is" validate "$tmp/row.csv" --format json
grep -q '"status": "skipped"' "$out" && nok "is predicted" || ok "is predicted"
for case in "precision int3 not.known" "step_time_s -1 no.positive.number" "step_time_s nan no.positive.number" \
  "tp 1.5 no.whole.number" "tp eight no.whole.number" "pp 0 no.whole.number" "seq_len 1e400 no.whole.number" "gbs - no.whole.number"; do
  # shellcheck disable=SC2086 # three words
  set -- $case
  cell_of "$tmp/row.csv" "$1" "$2" >"$tmp/bad.csv"
  sim validate "$tmp/bad.csv" --format json
  [ $rc -eq 0 ] && grep -q '"status": "skipped"' "$out" && grep -Eq "\"reason\": \".*$3" "$out" &&
    ok "$1 $2" || nok "$1 $2"
done

# Models of operators: an image has no sequence length, and a shape is not guessed.
cat >"$tmp/kinds.csv" <<'T'
id,class,model,params_b,num_layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,num_gpus,gpus_per_node,interconnect,framework,year,tp,pp,gbs,mbs,precision,sharding,step_time_s
image,B,ResNet-50 v1.5,,,,,,,,V100-16GB-SXM2,8,8,,MXNet,2020,1,1,1024,128,FP32,ddp,0.4
text,B,BERT-Large,,24,1024,16,4096,30522,128,V100-16GB-SXM2,8,8,,MXNet,2020,1,1,256,32,FP16,ddp,0.4
small,B,BERT-tiny,,2,128,2,512,30522,128,V100-16GB-SXM2,8,8,,MXNet,2020,1,1,256,32,FP16,ddp,0.1
shapeless,B,BERT-4B,4,,,,,,128,V100-16GB-SXM2,8,8,,MXNet,2020,1,1,256,32,FP16,ddp,0.4
known,B,ViT-L/16,0.304,,,,,,,V100-16GB-SXM2,8,8,,PyTorch,2020,1,1,256,32,FP16,ddp,0.4
T
done_with "models of operators" validate "$tmp/kinds.csv" --format csv
for row in image text small known; do
  grep -q "^$row,.*,assumed" "$out" && ok "$row is predicted" || nok "$row is predicted"
done
grep -q '^shapeless,.*skipped.*neither its shape' "$out" && ok "no shape is guessed" || nok "no shape is guessed"
cut -d, -f1,3- "$tmp/kinds.csv" >"$tmp/classless.csv"
refused "--class of a table that has none" 2 '--class: .*"class" is missing' validate "$tmp/classless.csv" --class A,B
refused "the same, crossed" 2 '--class: .*"class" is missing|source_title' validate "$tmp/classless.csv" --class A,B --cross gpu
finish
