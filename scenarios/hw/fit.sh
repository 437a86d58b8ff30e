#!/bin/sh
# Writes the shipped device profiles anew: each file of start/ (datasheets, and numbers taken from relatives), fitted in the
# steps that recipes.txt names. usage: scenarios/hw/fit.sh DATA OUTDIR [PROFILE…]
set -eu
here=$(dirname "$0")
data=$1 out=$2
shift 2
only=$*
bin=${CLUSTERSIM:-build/clustersim}
mkdir -p "$out"
: > "$out/fit.log"

for start in "$here"/start/*.json; do
  name=$(basename "$start" .json)
  case " ${only:-$name} " in *" $name "*) ;; *) continue ;; esac
  cp "$start" "$out/$name.json"
  chmod u+w "$out/$name.json"
  grep "^$name " "$here/recipes.txt" > "$out/steps" || continue
  while read -r step; do
    eval "set -- ${step#"$name" }"
    for word; do # DATA/file stands for a file of the tables
      shift
      case $word in DATA/*) set -- "$@" "$data/${word#DATA/}" ;; *) set -- "$@" "$word" ;; esac
    done
    echo "== $name" >> "$out/fit.log"
    "$bin" fit "$@" --leave-out-fifth --hold-out 0 --resamples 20 --base "$out/$name.json" \
      -o "$out/next.json" >> "$out/fit.log"
    mv "$out/next.json" "$out/$name.json"
  done < "$out/steps"
done
rm -f "$out/steps"
