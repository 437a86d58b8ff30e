#!/bin/sh
# shellcheck disable=SC2015,SC2016 # ok never fails; scripts to be read hold dollars
# Files of frameworks into parts of a scenario: launch scripts, recipes, and what is refused.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
says () { grep -Eq -- "$2" "$out" && ok "$1" || nok "$1" "no $2"; }
lacks () { grep -Eq -- "$2" "$out" && nok "$1" "$2 is there" || ok "$1"; }

# ---- Megatron-LM: a script with what such scripts do ----
cat >"$tmp/run.sh" <<'SH'
#!/bin/bash
#SBATCH --nodes=4
set -e
TP=${1:-2}
PP=${PP:-4}   # a default
LAYERS=$((PP * 8)) HIDDEN=4_096
function unused { echo --num-layers 99; }
if [[ "$TP" == 2 ]] && [ -z "$UNSET" ]; then
  EXTRA="--swiglu --normalization RMSNorm"
elif [ $TP -gt 4 ]; then
  EXTRA="--wrong"
else
  EXTRA=""
fi
case $PP in 1|2) GBS=64 ;; 4) GBS=128 ;; *) GBS=256 ;; esac
for i in a b; do LIST+=" --$i-option $i"; done
ARGS=(
  --num-layers $LAYERS
  --hidden-size $((HIDDEN))  # a comment
  --num-attention-heads 32 --group-query-attention --num-query-groups 8
  # --num-layers 7
  "--vocab-size 32000"
)
ARGS+=(--seq-length 2048 --micro-batch-size 1 --global-batch-size $GBS)
cat <<EOT > ds.json
{ "not": "--num-layers 1" }
EOT
OPTS=" \
  --bf16 \
  --recompute-granularity selective --recompute-modules core_attn mlp \
  --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP"
torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py "${ARGS[@]}" $OPTS $EXTRA $LIST \
  --sequence-parallel --use-distributed-optimizer --save "${OUT_DIR}/x" 2>&1 | tee log
SH
done_with "a launch script" import megatron-args "$tmp/run.sh"
for what in '"num_layers": 32' '"hidden": 4096' '"kv_heads": 8' '"vocab": 32000' '"gated_mlp": true' '"norm": "rmsnorm"' \
  '"ffn_hidden": 10880' '"global_batch_sequences": 128' '"tp": 2' '"pp": 4' '"sequence_parallel": true' '"zero_stage": 1' \
  '"precision": "bf16"' '"recompute": "selective:core_attn,mlp"' '"nodes": 4' '"gpus_per_node": 8' \
  'ignored:.* --a-option --b-option' ' --save'
do says "$what" "$what"; done
lacks "an unused branch" 'wrong'
done_with "its own parameter" import megatron-args "$tmp/run.sh" 8 PP=2
says "tp by position" '"tp": 8'
says "pp by name" '"pp": 2'
says "case follows" '"global_batch_sequences": 64'
says "arithmetic follows" '"num_layers": 16'
done_with "a value of the user's" import megatron-args "$tmp/run.sh" micro-batch-size=3
says "goes over the file's" '"micro_batch_sequences": 3'
printf -- '--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length=1024 \\\n --global-batch-size 8 --fp16 --vocab-size 50304\n' >"$tmp/args.txt"
done_with "arguments alone" import megatron-args "$tmp/args.txt"
says "GPT-2, its parameters to the unit" '124,475,904 parameters'
says "Megatron's defaults" '"pos": "learned"'
printf 'A=$(nvidia-smi | wc -l)\npython x.py --num-layers $A --hidden-size 8\n' >"$tmp/unknown.sh"
refused "what only running would tell" 2 'unknown\.sh:2: --num-layers: .*known only when it runs' import megatron-args "$tmp/unknown.sh"
printf 'python x.py --num-layers $LAYERS --lr $LR --hidden-size 8\n' >"$tmp/unset.sh"
refused "an unset variable, by its name" 2 'LAYERS=VALUE' import megatron-args "$tmp/unset.sh"
printf 'python x.py --num-layers 2 --lr $LR --hidden-size 64 --num-attention-heads 2\n' >"$tmp/lr.sh"
done_with "one that does not matter" import megatron-args "$tmp/lr.sh"
printf 'A=1\nB=2\n' >"$tmp/none.sh"
refused "no launch" 2 'no command with arguments' import megatron-args "$tmp/none.sh"
printf 'if true; then\necho "x\n' >"$tmp/broken.sh"
refused "no shell" 2 'broken\.sh:[0-9]+: ' import megatron-args "$tmp/broken.sh"
printf 'python x.py --num-layers zwei --hidden-size 8\n' >"$tmp/word.sh"
refused "no number" 2 'whole number.*zwei' import megatron-args "$tmp/word.sh"
printf 'while true; do A=$A$A; done\npython x --num-layers 3 --hidden-size 4\n' >"$tmp/loop.sh"
refused "a word that grows without end" 2 'loop\.sh:1: a word grows' import megatron-args "$tmp/loop.sh"
printf 'while true; do A=1; done\npython x --num-layers 3 --hidden-size 4\n' >"$tmp/loop.sh"
done_with "a loop without an end is left" import megatron-args "$tmp/loop.sh"
# Nothing of a script is run.
printf 'touch "%s/ran"\nX=$(touch "%s/ran")\npython x --num-layers 3 --hidden-size 4 > "%s/ran"\n' "$tmp" "$tmp" "$tmp" >"$tmp/evil.sh"
done_with "commands" import megatron-args "$tmp/evil.sh"
[ ! -e "$tmp/ran" ] && ok "are not run" || nok "are not run"
printf 'MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 64\n  --num-attention-heads: 4\n  --tensor-model-parallel-size: ${TP}\n  --bf16: true\n  --fp16: false\n  --seq-length: ${SEQ:-512}\n' >"$tmp/args.yaml"
refused "YAML of arguments: a template" 2 'args\.yaml:5: --tensor-model-parallel-size: .*TP=VALUE' import megatron-args "$tmp/args.yaml"
done_with "filled in" import megatron-args "$tmp/args.yaml" TP=2
says "its default" '"sequence_tokens": 512'
says "a switch that is off" '"precision": "bf16"'

# ---- NeMo ----
cat >"$tmp/nemo.yaml" <<'YAML'
trainer: { num_nodes: 2, devices: 8, precision: bf16-mixed }
model:
  micro_batch_size: 1
  global_batch_size: 64
  tensor_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: null
  encoder_seq_length: 2048
  num_layers: 4
  hidden_size: 256
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: ${training.model.num_layers}
  normalization: rmsnorm
  bias: false
  activation: fast-swiglu
  share_embeddings_and_output_weights: false
  position_embedding_type: rope
  activations_checkpoint_granularity: full
  optim: { name: mcore_distributed_optim, lr: 1e-4 }
  tokenizer: { type: "${tokenizer}" }
YAML
done_with "a NeMo recipe" import nemo "$tmp/nemo.yaml"
for what in '"ffn_hidden": 1024' '"heads": 4' '"gated_mlp": true' '"zero_stage": 1' '"recompute": "full"' '"nodes": 2' 'ignored:.*model\.optim\.lr'
do says "$what" "$what"; done
printf 'model:\n  num_layers: ${oc.env:LAYERS}\n' >"$tmp/env.yaml"
refused "an interpolation that is not in the file" 2 'env\.yaml:2: num_layers: is a template' import nemo "$tmp/env.yaml"
printf 'model: {hf_id: x}\nverification_index: {a: [b]}\n' >"$tmp/card.yaml"
refused "a card is no recipe" 2 'no recipe' import nemo "$tmp/card.yaml"
printf 'a: [1\n' >"$tmp/bad.yaml"
refused "no YAML" 2 'bad\.yaml:[0-9]+: is no YAML' import nemo "$tmp/bad.yaml"
printf 'a: 1\n' >"$tmp/other.yaml"
refused "another YAML" 2 'no key of a recipe' import nemo "$tmp/other.yaml"

# ---- DeepSpeed ----
cat >"$tmp/ds.json" <<'JSON'
{ "train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto",
  "bf16": { "enabled": true },
  "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu" }, "reduce_bucket_size": "auto" } }
JSON
refused "auto, by the name of the key" 2 'ds\.json:1: /train_micro_batch_size_per_gpu: is "auto"' import deepspeed "$tmp/ds.json"
done_with "filled in" import deepspeed "$tmp/ds.json" train_micro_batch_size_per_gpu=2
says "the stage" '"zero_stage": 3'
says "the batch" '"global_batch_sequences": 64'
says "offload is told" 'offload_optimizer to cpu is not simulated'
says "what was ignored" 'ignored:.*zero_optimization\.reduce_bucket_size'
printf '{ "train_batch_size": CONFIG_BATCH_SIZE }\n' >"$tmp/template.json"
refused "a template" 2 'train_batch_size.*CONFIG_BATCH_SIZE.*template' import deepspeed "$tmp/template.json"

# ---- torchtitan ----
cat >"$tmp/t.toml" <<'TOML'
# a comment
[model]
name = "llama3"  # and another
flavor = '8B'
[training]
local_batch_size = 2
seq_len = 8_192
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
[optimizer]
list = [
  "a", # b
  "c"
]
lr = 3e-4
TOML
done_with "torchtitan" import torchtitan "$tmp/t.toml"
for what in '"model": "llama-3-8b"' '"micro_batch_sequences": 2' '"sequence_tokens": 8192' '"tp": 2' '"fsdp": true' \
  '"recompute": "selective"' 'ignored:.*optimizer\.lr' 'data-parallel ranks'
do says "$what" "$what"; done
done_with "with the GPUs" import torchtitan "$tmp/t.toml" gpus=64 global_batch_size=128
printf '[training]\nseq_len = "8\n' >"$tmp/bad.toml"
refused "a string without an end" 2 'bad\.toml:2: a string is not closed' import torchtitan "$tmp/bad.toml"
printf 'no equals\n' >"$tmp/bad2.toml"
refused "no pair" 2 'bad2\.toml:1: no "key = value"' import torchtitan "$tmp/bad2.toml"

# A form feed ends words as any blank does (a loop without end, found by the fuzzer).
printf 'A=(1 \f 2)\n\f[[ a \f = b ]]\ntorchrun --nnodes=2 \f pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12\n' >"$tmp/ff.sh"
done_with "form feeds in a script" import megatron-args "$tmp/ff.sh"

# ---- timelines ----
# Compute 0-10 and 20-30 us, all-reduce 5-25 us: busy 20 and 20, exposed 10 us, span 40 (a copy at 38-40), idle 8.
cat >"$tmp/k.json" <<'JSON'
{ "traceEvents": [
 {"ph":"X","cat":"kernel","name":"gemm","ts":100,"dur":10}, {"ph":"X","cat":"kernel","name":"gemm","ts":120,"dur":10},
 {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","ts":105,"dur":20},
 {"ph":"X","cat":"gpu_memcpy","name":"Memcpy","ts":138,"dur":2}, {"ph":"X","cat":"kernel","name":"broken"},
 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","ts":100,"dur":40}, {"ph":"M","name":"x"} ] }
JSON
done_with "a Kineto trace" import kineto "$tmp/k.json" --format csv
for what in 'span,4e-05' 'step_time,4e-05' 'compute,2e-05' 'communication,2e-05' 'exposed_communication,1e-05' 'idle,8e-06' 'all_reduce,2e-05'
do says "$what" "^$what\$"; done
gzip -k "$tmp/k.json" && done_with "packed" import kineto "$tmp/k.json.gz" --format json
says "what was not understood is counted" '"skipped": 1'
echo '{ "traceEvents": [] }' >"$tmp/empty.json"
refused "no GPU in it" 2 'no kernel of a GPU' import kineto "$tmp/empty.json"
echo x >"$tmp/x.gz"
refused "no gzip" 2 'x\.gz: cannot be unpacked' import kineto "$tmp/x.gz"
echo '{ "workload_graph": [ {"Id":1,"Name":"gemm","NodeType":4,"runtime":7,"is_cpu_op":false},
 {"Id":2,"Name":"ncclKernel_AllGather","NodeType":7,"runtime":5}, {"Id":3,"Name":"aten::mm","NodeType":4,"runtime":3,"is_cpu_op":true}, 1 ] }' >"$tmp/c.json"
done_with "a Chakra trace" import chakra "$tmp/c.json" --format csv
for what in 'compute,7e-06' 'communication,5e-06' 'all_gather,5e-06' 'host,3e-06'; do says "$what" "^$what\$"; done
# The same nodes as a binary trace: metadata (empty), then each message behind its length. Fields: 1 id, 2 name, 3 type,
# 7 duration, 10 attributes (1 name, 27 a bool, 9 an int64); field 6 (start) is passed over.
{ printf '\000'
  printf '\016\010\001\022\004gemm\030\004\060\144\070\007'
  printf '\030\010\002\022\001x\030\007\070\005\122\015\012\011comm_type\110\002'
  printf '\040\010\003\022\010aten::mm\030\004\070\003\122\016\012\011is_cpu_op\330\001\001'; } >"$tmp/x.et"
done_with "a binary trace" import chakra "$tmp/x.et" --format csv
for what in 'compute,7e-06' 'communication,5e-06' 'all_gather,5e-06' 'host,3e-06'; do says "binary: $what" "^$what\$"; done
head -c 30 "$tmp/x.et" >"$tmp/cut.et"
refused "a binary trace that is cut" 2 'cut\.et: byte 16: no whole message' import chakra "$tmp/cut.et"
: >"$tmp/none.et"
refused "an empty one" 2 'none\.et: has no node' import chakra "$tmp/none.et"

# ---- a part makes a scenario ----
done_with "a script's JSON" import megatron-args "$tmp/run.sh" --format json
grep -v -e '"source"' "$out" | tr -d '\n' | sed 's/,  "notes":.*/}/; s/"cluster": {/"format": 1, "cluster": { "gpu": "H100-SXM-80GB", "fabric": "dgx-h100-ndr",/' >"$tmp/s.json"
done_with "runs" predict "$tmp/s.json"

# ---- the shared files ----
if [ -n "$CLUSTERSIM_SHARED" ]; then
  in=$CLUSTERSIM_SHARED/data/inputs
  each () { kind=$1; shift; for f in "$@"; do # read, or refused in one line that names the file
    sim import "$kind" "$f"
    { [ $rc -eq 0 ] && [ -s "$out" ]; } || { [ $rc -eq 2 ] && [ "$(wc -l <"$err")" -eq 1 ] && grep -q "$(basename "$f")" "$err"; } &&
      ok "$kind $(basename "$f"): $rc" || nok "$kind $(basename "$f")" "status $rc"
  done; }
  each megatron-args "$in"/megatron/*
  each nemo "$in"/nemo/*
  each deepspeed "$in"/deepspeed/*
  each torchtitan "$in"/torchtitan/*
  each kineto "$in"/kineto/*
  each hf-config "$in"/hf_config/*.json
  # Shapes that are known: their counts to the unit.
  count () { sim import megatron-args "$in/megatron/$1" ${2:+"$2"}; says "$1" "$3 parameters"; }
  count bigscience-tr11-176B-ml.slurm '' 176,247,271,424
  count nvidia-train_llama3_8b_h100_fp8.sh '' 8,030,261,248
  count nvidia-sbatch_mfsdp_deepseek_v3.sh vocab-size=129280 671,026,419,200
  count nvidia-train_mixtral_8x7b_distributed.sh vocab-size=32000 46,702,792,704
else
  skip "the shared files" "CLUSTERSIM_SHARED is not set"
fi
finish
