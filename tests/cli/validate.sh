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

# An option that would change nothing is refused.
refused "a key of a scenario" 2 '--set: validate takes no scenario' validate "$table" --set train.precision=fp8
refused "rows chosen in a cross-validation" 2 '--cross: not with --where' validate "$table" --cross gpu --where 'gpu~A100'
refused "classes of all tables" 2 '--all: not with --class' validate --all "$tmp" --class A

# Frameworks and networks that nobody has described, and runs that leave micro-batch or recomputation open: an answer, what
# was assumed, and a wider range than the same run of a known framework.
cat >"$tmp/buyer.csv" <<'T'
id,class,model,hidden,num_layers,heads,kv_heads,ffn_hidden,vocab,seq_len,gated_mlp,moe_experts,moe_topk,moe_ffn_hidden,gpu,num_gpus,gpus_per_node,interconnect,framework,year,tp,pp,ep,gbs,mbs,precision,recompute,sharding,step_time_s
mi300x,C,Llama 8B,4096,32,32,8,14336,128256,8192,1,,,,MI300X,8,8,,Primus,2025,1,1,,80,1,bf16,none,fsdp,7
fsdp,C,Llama 8B,4096,32,32,8,14336,128256,8192,1,,,,MI300X,8,8,,PyTorch FSDP,2025,1,1,,80,1,bf16,none,fsdp,7
h20,C,Llama 7B,4096,32,32,32,11008,32000,4096,1,,,,H20,8,8,,Colossal,2024,1,1,,64,,bf16,,zero1,17
l40s,C,Llama 1B,2048,22,32,4,5632,32000,2048,1,,,,L40S,8,8,PCIe,mine,2024,1,1,,64,,bf16,,ddp,4
rtx,C,Llama 1B,2048,22,32,4,5632,32000,2048,1,,,,RTX 5090,4,4,,mine,2025,1,1,,32,,,,ddp,4
net,C,Llama 70B,8192,80,64,8,28672,128256,8192,1,,,,B300,64,8,carrier pigeons,Megatron-Core,2026,4,4,,128,1,bf16,none,,7
known,C,Llama 70B,8192,80,64,8,28672,128256,8192,1,,,,B300,64,8,400 Gb InfiniBand,Megatron-Core,2026,4,4,,128,1,bf16,none,,7
deep,C,GPT,1536,24,16,16,6144,50257,1024,0,,,,A100-80GB,8,8,,DeepSpeed ZeRO-2 of mine,2023,1,1,,64,,fp16,,zero2,1
old,C,GPT,1920,24,15,15,7680,51200,1024,0,,,,V100-32GB,1,16,,Megatron-LM,2020,1,1,,8,,fp16,full,ddp,1
big,C,Llama 13B,5120,40,40,40,13824,32000,8192,1,,,,A100-40GB,8,8,,PyTorch FSDP,2024,1,1,,64,4,bf16,,fsdp,9
T
done_with "frameworks without a profile" validate "$tmp/buyer.csv" --format csv
grep -q ',skipped,' "$out" && nok "every row has an answer" || ok "every row has an answer"
# says ROW PATTERN: the row tells that it was assumed. width ROW: upper end of the range over the lower.
says () { grep -q "^$1,.*assumed.*$2" "$out" && ok "$1: $2" || nok "$1: $2"; }
width () { awk -F, -v r="$1" '$1 == r { printf "%d", 1000 * $8 / $7 }' "$out"; }
says mi300x 'software as generic-pytorch'
says h20 'micro-batch [1248]$'
says l40s 'software as generic-pytorch.*micro-batch [248]$'
says rtx '16-bit training'
says net 'network as dgx-b200-ndr'
says deep 'software as megatron-deepspeed-2024'
says old 'micro-batch 8$'
says big 'recompute '
grep '^big' "$out" | grep -q 'recompute none' && nok "memory asks for recomputation" || ok "memory asks for recomputation"
grep '^known' "$out" | grep -q 'network as' && nok "a known network" || ok "a known network"
[ "$(width mi300x)" -gt "$(width fsdp)" ] && ok "wider for an unknown framework" || nok "wider for an unknown framework"
[ "$(width net)" -gt "$(width known)" ] && ok "wider for an unknown network" || nok "wider for an unknown network"
finish
