#!/bin/sh
# README.md: its tables are what the program prints, and its first ten minutes work as printed.
# shellcheck disable=SC2015 # ok never fails
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
sh tests/readme-update.sh --check >"$out" 2>"$err" && ok "the tables hold true output" ||
  { nok "the tables hold true output (tests/readme-update.sh writes them anew)"; sed 's/^/# /' "$out"; }

cat >"$tmp/config.json" <<'JSON'
{ "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
  "intermediate_size": 5632, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
  "vocab_size": 32000, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu",
  "tie_word_embeddings": false }
JSON
sed -n '/^## The first ten minutes/,/^## How right/s/^    build\/clustersim //p' README.md >"$tmp/lines"
[ "$(wc -l <"$tmp/lines")" -ge 8 ] && ok "commands are there" || nok "commands are there"
root=$PWD
while IFS= read -r line; do
  case $line in *scenarios/published*) line=$(echo "$line" | sed "s,scenarios/published,$root/&,") ;; esac
  if (cd "$tmp" && eval "\"$CLUSTERSIM\" $line") >"$out" 2>"$err" </dev/null; then ok "$line"; else nok "$line"; fi
done <"$tmp/lines"
[ -s "$tmp/report.html" ] && [ -s "$tmp/sweep.csv" ] && [ -s "$tmp/mine.json" ] && ok "and leave their files" || nok "and leave their files"
finish
