#!/bin/sh
# Published memory cases as scenarios (tests/data/memory/cases.txt): a run that ran out of memory is never said to fit,
# at most 1 of 20 that ran is said not to, and figures that were reported are met within a third.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
data=$PWD/tests/data/memory

field () { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$out" | sed -n "$2p"; }

# predicted ID SETS...: "true|false worst-figure-in-GB"
fits=0 missed='' wrong='' far='' ids=''
while read -r id outcome figure sets; do
  case $id in '#'* | '') continue ;; esac
  ids="$ids $id"
  set --
  for s in $sets; do set -- "$@" --set "$s"; done
  sim predict "$data/case.json" --format json "$@"
  if [ $rc -ne 0 ]; then nok "$id is a scenario"; continue; fi
  said=$(field fits 1) worst=$(($(field worst_stage 1) + 1))
  if [ "$outcome" = oom ]; then
    [ "$said" = false ] || wrong="$wrong $id"
    continue
  fi
  fits=$((fits + 1))
  [ "$said" = true ] || missed="$missed $id"
  case $figure in
    *a) key=allocated_bytes ;;
    *r) key=reserved_bytes ;;
    *) continue ;; # of a whole GPU: what its allocator keeps beside is the run's own affair
  esac
  awk -v got="$(field $key $worst)" -v want="${figure%[arn]}" \
    'BEGIN { e = got / (want * 1e9) - 1; exit !(e < 1 / 3 && e > -1 / 3) }' || far="$far $id"
done <"$data/cases.txt"
echo "# cases:$ids"
[ -z "$wrong" ] && ok "no run that ran out of memory is said to fit" || nok "said to fit, ran out of memory:$wrong"
# shellcheck disable=SC2086 # a list of words
set -- $missed
[ $(($# * 20)) -le $fits ] && ok "$# of $fits that ran are said not to fit" || nok "said not to fit, ran:$missed"
[ -z "$far" ] && ok "reported figures within a third" || nok "further off than a third:$far"
finish
