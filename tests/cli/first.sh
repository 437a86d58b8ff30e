#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# The first ten minutes: a prediction from a Hugging Face file alone, a log beside a prediction, a timeline as text.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=gpt3-175b-a100
says () { grep -Eq -- "$2" "$out" && ok "$1" || nok "$1" "no $2"; }

cat >"$tmp/config.json" <<'JSON'
{ "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
  "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "hidden_act": "silu",
  "tie_word_embeddings": false }
JSON
c=$tmp/config.json
done_with "a model and GPUs" predict --hf-config "$c" --gpus 16xH100
says "the exact count of parameters" 'model .* 8,030,261,248 parameters'
says "the GPUs" '16 x H100-SXM-80GB'
says "it fits" '^  fits:'
for what in 'network dgx-h100-ndr.*--set cluster\.fabric' 'tokens a sequence.*--set train\.sequence_tokens' \
  'sequences a step.*--set train\.global' 'bf16 with Adam.*--set train\.precision' 'software.*--set software' 'layout: the fastest of [0-9]+'
do says "it says what it assumed: $what" "$what"; done
done_with "and again" predict --hf-config "$c" --gpus 16xH100
cp "$out" "$tmp/first"
sim predict --hf-config "$c" --gpus 16xH100
cmp -s "$out" "$tmp/first" && ok "the same twice" || nok "the same twice"
done_with "what the user sets is kept" predict --hf-config "$c" --gpus 16xH100 --set parallel.tp=4 --set train.sequence_tokens=8192
says "tp" '^layout +tp 4 '
says "the sequence" '^batch .* 8192 tokens'
grep -q 'tokens a sequence' "$out" && nok "and not told as assumed" || ok "and not told as assumed"
# The rule is what --set of the same layouts gives: none that fits is faster.
best=$(sed -n 's/^step time *\([0-9.]*\) s.*/\1/p' "$tmp/first")
faster=0
for tp in 1 2 4 8; do
  for r in none selective full; do
    sim predict --hf-config "$c" --gpus 16xH100 --set parallel.tp=$tp --set train.recompute=$r --set parallel.pp=1
    t=$(sed -n 's/^step time *\([0-9.]*\) s.*/\1/p' "$out")
    left=$(sed -n 's/^  fits: \([0-9.]*\) of \([0-9.]*\) GiB.*/\1 \2/p' "$out")
    [ -n "$left" ] && echo "$t $best $left" | awk '{ exit !($3 < 0.95 * $4 && $1 < $2 - 1e-4) }' && faster=$((faster + 1))
  done
done
[ $faster -eq 0 ] && ok "no layout of twelve is faster and fits" || nok "a layout of twelve is faster and fits" "$faster"
done_with "too few GPUs" predict --hf-config "$c" --gpus 1xH100
says "says that it does not fit" 'none of [0-9]+ leaves 5 %'
says "and from when on it would" 'it fits from [248] of these GPUs on'
done_with "A100 by its alias" predict --hf-config "$c" --gpus 8xA100-80GB --format json
says "is JSON" '"fits": true'
refused "an unknown GPU" 2 'unknown GPU' predict --hf-config "$c" --gpus 8xZ100
refused "GPUs without a number" 2 'NUMBERxGPU' predict --hf-config "$c" --gpus H100
refused "no GPUs" 2 '0xH100' predict --hf-config "$c" --gpus 0xH100
refused "--gpus alone" 2 'go together' predict --gpus 8xH100
refused "--hf-config alone" 2 'go together' predict --hf-config "$c"
refused "both ways" 2 'one of them' predict $s --hf-config "$c" --gpus 8xH100
refused "a config that is not there" 2 'no such file' predict --hf-config "$tmp/none.json" --gpus 8xH100
refused "a wrong value of the user's" 2 'heads 32 is not divisible by tp 3' predict --hf-config "$c" --gpus 12xH100 --set parallel.tp=3

# ---- from there to all other commands ----
done_with "the scenario is saved" predict --hf-config "$c" --gpus 16xH100 --save "$tmp/mine.json"
print=$(sed -n 's/^fingerprint *//p' "$out")
done_with "it predicts the same" predict "$tmp/mine.json"
[ -n "$print" ] && grep -q "$print" "$out" && ok "with the same fingerprint" || nok "with the same fingerprint"
done_with "plan takes it" plan "$tmp/mine.json" --top 2 --seconds 20
done_with "sweep takes it" sweep "$tmp/mine.json" --vary train.micro_batch_sequences=1,2
refused "--save of a scenario that is a file" 2 '--save: only with --hf-config' predict $s --save "$tmp/x.json"
refused "--save where nothing can be" 1 'cannot be written' predict --hf-config "$c" --gpus 16xH100 --save /nowhere/x.json

# ---- logs: the numbers below are invented, the forms are those of the frameworks ----
cat >"$tmp/megatron.log" <<'LOG'
host1:  iteration        1/     100 | consumed samples:   64 | elapsed time per iteration (ms): 99000.0 | throughput per GPU (TFLOP/s/GPU): 20.0 | global batch size:    64 | lm loss: 1.1E+01 |
host1:  iteration        2/     100 | consumed samples:  128 | elapsed time per iteration (ms): 13000.0 | throughput per GPU (TFLOP/s/GPU): 160.0 | global batch size:    64 | lm loss: 1.0E+01 |
    forward-backward ...............................: (12500.00, 12800.00)
    optimizer ......................................: (70.0, 80.0)
[Rank 3] (after 2 iterations) memory (MB) | allocated: 12335.4 | max allocated: 51200.0 | reserved: 53330.0 | max reserved: 61440.0
host1:  iteration        3/     100 | consumed samples:  192 | elapsed time per iteration (ms): 14000.0 | throughput per GPU (TFLOP/s/GPU): 170.0 | global batch size:    64 | lm loss: 1.0E+01 |
LOG
done_with "a Megatron log" predict $s --against "$tmp/megatron.log" --format csv
row () { awk -F, -v q="$2" -v m="$3" '$1 == q { d = $4 - m; ok = d * d < 1e-12 * m * m && $5 * $4 / $3 - 1 < 1e-6 } END { exit !ok }' "$out" &&
  ok "$1" || nok "$1"; }
row "the first step is left out: median of two" step_time 13.5
row "TFLOP/s" model_tflops_per_gpu 165
row "the slowest rank of a timer" forward_backward 12.8
row "MB are 2^20" memory_allocated 50
row "reserved" memory_peak 60
printf 'iteration 1/9 | elapsed time per iteration (ms): 100.0 | global batch size: 32 |\n' >"$tmp/other.log"
done_with "of another batch" predict $s --against "$tmp/other.log"
says "warns" "warning: the log's global batch is 32 sequences, the scenario's 64"
printf 'Epoch 0: 10%% 5/50 [00:30, v_num=, reduced_train_loss=6.5, global_step=4.0, train_step_timing in s=5.810]\nEpoch 0: 12%% 6/50 [00:36, train_step_timing in s=5.830]\n' >"$tmp/nemo.log"
done_with "NeMo" predict $s --against "$tmp/nemo.log" --format csv
row "its step" step_time 5.83
printf 'Step Time : 6.02s GPU utilization: 552.1MODEL_TFLOP/s/GPU\n' >"$tmp/bridge.log"
done_with "Megatron-Bridge" predict $s --against "$tmp/bridge.log" --format csv
row "its step" step_time 6.02
row "its rate" model_tflops_per_gpu 552.1
printf '\033[32mstep: %s\033[0m  loss: 7.1  \033[33mmemory: 47.92GiB(60.1%%)\033[0m  tps: %s  tflops: 341.2  mfu: 34.50%%\n' 10 6,667 20 6,700 >"$tmp/titan.log"
done_with "torchtitan, with its colours" predict $s --against "$tmp/titan.log" --format csv
row "tokens/s/GPU, with a comma in it" tokens_per_s_per_gpu 6700
row "MFU" mfu 34.5
row "GiB" memory_peak 47.92
done_with "as JSON" predict $s --against "$tmp/megatron.log" --format json
says "with the ratio" '"ratio": '
done_with "as text below the report" predict $s --against "$tmp/megatron.log"
says "a table" 'step_time .* 13\.5 .*s '
has () { grep -q -- "$2" "$out" && ok "$1" || nok "$1" "no $2"; }
# Hugging Face: bars of loading and of evaluation beside that of the training; one text, "\r" between its states.
{
  printf 'Loading checkpoint shards: 100%%|##| 3/3 [00:05<00:00,  1.75s/it]\n100%%|##| 4/4 [00:00<00:00, 500.00it/s]\n'
  printf '  0%%|          | 0/16 [00:00<?, ?it/s]\r  6%%|#         | 1/16 [00:58<14:41, 99.00s/it]\r 12%%|#         | 2/16 [02:00<13:54, 59.61s/it]\r'
  printf ' 19%%|##        | 3/16 [03:00<12:56, 59.72s/it]\n'
  printf "{'train_runtime': 919.0, 'train_samples_per_second': 1.088, 'train_steps_per_second': 0.017, 'epoch': 1.0}\n"
  printf 'see_memory_usage MA 3.62 GB         Max_MA 4.93 GB         CA 6.08 GB         Max_CA 6 GB\nsee_memory_usage MA 5.87 GB         Max_MA 6.63 GB         CA 11.91 GB         Max_CA 12 GB\n'
} >"$tmp/hf.log"
done_with "the Hugging Face Trainer" predict $s --against "$tmp/hf.log" --format csv
row "the bar that ran longest, its first step left out" step_time 59.665
row "samples a second" samples_per_s 1.088
row "the largest of see_memory_usage" memory_allocated 6.63
row "reserved" memory_peak 12
has "says which statistic" '^memory_peak,.*,largest$'
done_with "as text" predict $s --against "$tmp/hf.log"
has "memory of several lines is the largest" 'memory_allocated .*2 lines, measured is the largest of them'
has "see_memory_usage is no peak of a step" 'warning: see_memory_usage is of the moments'
printf ' 50%%|##   | 1/2 [00:01<00:01,  2.00it/s, loss=3]\n100%%|#####| 2/2 [00:01<00:00,  4.00it/s]\n' >"$tmp/fast.log"
done_with "steps a second" predict $s --against "$tmp/fast.log" --format csv
row "are turned round" step_time 0.25
printf "{'train_samples_per_second': 1.0}\n 50%%|#| 1/2 [01:04<01:04, 64.0s/it]\n" >"$tmp/batch.log"
done_with "of the same batch" predict $s --against "$tmp/batch.log"
grep -q 'not one run' "$out" && nok "no warning" || ok "no warning"
printf "{'train_samples_per_second': 1.0}\n 50%%|#| 1/2 [02:08<02:08, 128.0s/it]\n" >"$tmp/batch.log"
done_with "of twice the batch" predict $s --against "$tmp/batch.log"
has "warns" 'about 128 sequences, the scenario.s batch is 64: not one run'
printf '[2025-01-01] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, lr=[1e-4], RunningAvgSamplesPerSec=30.2, CurrSamplesPerSec=32, MemAllocated=12.0GB, MaxMemAllocated=31.5GB\nsteps: 20 loss: 2.1 iter time (s): 2.000 samples/sec: 32.000\n' >"$tmp/ds.log"
done_with "DeepSpeed" predict $s --against "$tmp/ds.log" --format csv
row "its step" step_time 2
row "its rate" samples_per_s 32
row "its memory" memory_allocated 31.5
printf ' 50%%|\n100%%|#| /\n 12%%|#| 2/0 [\n 12%%|#| 2/16 [aa<bb, 1s/it]\n 12%%|#| 2/16 [1:2:3<, 1s/it]\n' >"$tmp/bad.log"
refused "bars that are none" 2 'no line of a training log' predict $s --against "$tmp/bad.log"
echo nothing >"$tmp/none.log"
refused "no log" 2 'none\.log: no line of a training log' predict $s --against "$tmp/none.log"
refused "a log that is not there" 2 'nowhere' predict $s --against nowhere.log

# ---- a timeline as text ----
done_with "a Gantt" predict $s --set train.global_batch_sequences=8 --gantt
[ "$(grep -c '^ *[0-9]* |.*|$' "$out")" -eq 8 ] && ok "a row a stage" || nok "a row a stage"
first=$(grep '^ *0 |' "$out") last=$(grep '^ *7 |' "$out")
case $first in *'|0'*) ok "the first stage begins at once" ;; *) nok "the first stage begins at once" "$first" ;; esac
case $last in *'|.'*) ok "the last waits for it" ;; *) nok "the last waits for it" "$last" ;; esac
grep '^ *[0-9]* |' "$out" | grep -vq 'O' && nok "all end with the optimizer" || ok "all end with the optimizer"
if [ -n "$CLUSTERSIM_SHARED" ]; then
  for f in "$CLUSTERSIM_SHARED"/data/inputs/logs/*meg*.log "$CLUSTERSIM_SHARED"/data/inputs/logs/superbench*.log; do
    done_with "$(basename "$f")" predict $s --against "$f"
  done
else
  skip "real logs" "CLUSTERSIM_SHARED is not set"
fi
finish
