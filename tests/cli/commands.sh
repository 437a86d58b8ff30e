#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# Every command: --help, its example as printed, the exit statuses 0, 1 and 2.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc

# The example of import reads a file of the user's: here is one.
cat > "$tmp/config.json" <<'JSON'
{ "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
  "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "hidden_act": "silu",
  "tie_word_embeddings": false }
JSON
# So do those of plot and fit.
cp tests/data/plot/scaling.csv "$tmp/sweep.csv"
ln -s "$PWD/calibrate" "$tmp/calibrate"
ln -s "$PWD/plots" "$tmp/plots"
ln -s "$CLUSTERSIM_SCENARIOS" "$tmp/scenarios"
ln -s "$CLUSTERSIM" "$tmp/clustersim"

commands=$("$CLUSTERSIM" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] && ok "there are commands" || nok "there are commands"
for c in $commands; do
  sim "$c" --help
  if [ $rc -eq 0 ] && [ ! -s "$err" ] && grep -q "clustersim $c " "$out" && [ "$(wc -l <"$out")" -le 40 ]
  then ok "$c --help"; else nok "$c --help"; fi
  # The lines after "Example:" are commands that work as printed.
  sed -n '/^Example/,$s/^  clustersim /clustersim /p' "$out" >"$tmp/examples"
  [ -s "$tmp/examples" ] && ok "$c has an example" || nok "$c has an example"
  while read -r line; do
    (cd "$tmp" && PATH=$tmp:$PATH sh -c "$line") >"$out" 2>"$err" </dev/null
    rc=$?
    if [ $rc -eq 0 ] && [ ! -s "$err" ] && { [ -s "$out" ] || case $line in *' -o '*) true ;; *) false ;; esac }
    then ok "$line"; else nok "$line" "status $rc"; fi
  done <"$tmp/examples"
  refused "$c: an unknown option" 2 'no-such-option' "$c" --no-such-option
  [ "$c" = law ] && continue # options come after its own sub-commands: tests/cli/law.sh
  refused "$c: an unknown format" 2 'found "xml"' "$c" --format xml
  refused "$c: a wrong seed" 2 'seed' "$c" --seed -1
done

s=gpt3-175b-a100
refused "predict without a scenario" 2 'an argument is missing' predict
refused "predict with two scenarios" 2 'one argument too many' predict $s $s
refused "predict of a file that is not there" 2 'nowhere\.json' predict nowhere.json
refused "predict of an unknown name" 2 'unknown scenario' predict nowhere
refused "predict: a folder as input" 2 'folder|directory|regular' predict "$tmp/"
refused "predict into a folder that is not there" 1 'no-such/x: cannot be written' predict $s -o no-such/x
refused "predict into a folder" 1 'cannot be written' predict $s -o "$tmp"
refused "predict into no name" 1 'cannot be written' predict $s -o ''
refused "a trace into a folder that is not there" 1 'no-such/t' predict $s --trace no-such/t
refused "a trace of wrong ranks" 2 'ranks' predict $s --trace "$tmp/t" --trace-ranks x
[ ! -e "$tmp/t" ] && ok "and no file" || nok "and no file"
refused "a layout that does not fit, when it must" 1 'does not fit' \
  predict $s --require-fit --set train.recompute=none --set train.micro_batch_sequences=8
refused "the limit of events" 1 'limit of 100 events' predict $s --events --set run.max_events=100
refused "sweep of an unknown key" 2 'unknown key' sweep $s --vary parallel.xyz=1
refused "sweep without a scenario" 2 'an argument is missing' sweep --vary parallel.tp=1
refused "sweep into a folder that is not there" 1 'no-such/x: cannot be written' sweep $s -o no-such/x --vary parallel.tp=8
refused "validate of a table that is not there" 2 'nowhere\.csv' validate nowhere.csv
refused "import of an unknown kind" 2 'hf-config' import no-kind "$tmp/config.json"
refused "import of a file that is not there" 2 'nowhere\.json' import hf-config nowhere.json
refused "list of an unknown kind" 2 'gpus' list things
touch "$tmp/locked" && chmod 400 "$tmp/locked"
if [ "$(id -u)" -eq 0 ]; then
  skip "a file that may not be written" "root may"
else
  refused "a file that may not be written" 1 'locked: cannot be written' predict $s -o "$tmp/locked"
fi
if [ -c /dev/full ]; then
  refused "a full disk" 1 '/dev/full: cannot be written' predict $s -o /dev/full
  refused "a full disk, for a timeline" 1 '/dev/full: cannot be written \(No space left' predict $s --trace /dev/full
else
  skip "a full disk" "no /dev/full here"
fi
# Where there is no scenario no key of it can be set.
for line in "validate scenarios/published/runs.csv" "list gpus" "import hf-config x.json" "plot step x.csv -o x.svg" "fit x.jsonl" \
  "law list" "sweep --merge a b -o c"; do
  # shellcheck disable=SC2086
  refused "--set: ${line%% *}" 2 '--set|takes the files of the shards' $line --set parallel.tp=4
done
refused "a timeline where nothing can be" 1 'clustersim: /nowhere/x.json: cannot be written' predict $s --trace /nowhere/x.json
refused "a timeline of no stage" 2 'none of the stages \(found "99"; allowed: 0 to 7\)' predict $s --trace "$tmp/t.json" --trace-ranks 99
[ ! -e "$tmp/t.json" ] && ok "and no file" || nok "and no file"
refused "stages of no timeline" 2 'only with --trace' predict $s --trace-ranks 0
# No file stays behind, neither whole nor half.
[ -z "$(find "$tmp" -name '*.??????' ! -name 'config.json')" ] && ok "nothing half-written" ||
  nok "nothing half-written" "$(ls -la "$tmp")"
finish
