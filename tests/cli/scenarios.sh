#!/bin/sh
# shellcheck disable=SC2013,SC2015,SC2016 # names without blanks; ok never fails; patterns hold backquotes
# scenarios/README.md: its questions are answered by the commands as printed, and it lists every key that the program reads.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
readme=scenarios/README.md
mkdir "$tmp/bin"
ln -s "$CLUSTERSIM" "$tmp/bin/clustersim"
ln -s "$CLUSTERSIM_SCENARIOS" "$tmp/bin/scenarios"

grep '^| `.*| `clustersim [a-z]* ' $readme | grep '?' | awk -F' \\| ' '{ print $3 }' | sed 's/^`//; s/`$//' >"$tmp/commands"
[ "$(wc -l <"$tmp/commands")" -eq 12 ] && ok "twelve questions" || nok "twelve questions" "$(wc -l <"$tmp/commands")"
while read -r line; do
  PATH=$tmp/bin:$PATH sh -c "$line" >"$out" 2>"$err" </dev/null
  rc=$?
  [ $rc -eq 0 ] && [ -s "$out" ] && [ ! -s "$err" ] && ok "$line" || nok "$line" "status $rc"
  case $line in # no point of a sweep may have failed
    *sweep*--format*json*) grep -q '"error":' "$out" && nok "… all of it" || ok "… all of it" ;;
    *sweep*) sed 1d "$out" | grep -qv ',$' && nok "… all of it" || ok "… all of it" ;;
  esac
done <"$tmp/commands"
for name in $(grep '^| `.*| `clustersim [a-z]* ' $readme | grep '?' | sed 's/^| `\([^`]*\)`.*/\1/'); do
  q=$(grep "^| \`$name\`" $readme | awk -F' \\| ' '{ print $2 }')
  grep -q '"description": ".*?"' "scenarios/train/$name.json" && [ -n "$q" ] && ok "$name asks its question" || nok "$name asks its question"
done

# Keys in the tables of the reader.
keys () { tr '\n' ' ' <"$1" | grep -o "static const char \*const $2\[\] = {[^}]*}" | grep -o '"[A-Za-z_]*"' | tr -d '"'; }
for section in root cluster train parallel run published; do
  for k in $(keys sim/app/scenario_read.c ${section}_keys); do
    case $section in
      root) grep -Eq "^\| .*\`($k|$k\.[a-z_]*)\`" $readme ;;
      published) grep -q "\`published\`.*\`$k\`" $readme ;;
      *) grep -E "^\| .*\`$section\." $readme | grep -Eq "\`($section\.)?$k\`" ;;
    esac && ok "$section: $k" || nok "$section: $k is not in $readme"
  done
done
for k in $(keys sim/app/read_hetero.c keys) $(keys sim/app/read_hetero.c hetero_keys); do
  grep '`heterogeneity\.' $readme | grep -Eq "\`(heterogeneity\.)?$k\`" && ok "heterogeneity: $k" || nok "heterogeneity: $k is not in $readme"
done
for k in $(keys sim/app/read_network.c network_keys); do
  grep '`cluster\.network' $readme | grep -Eq "\`(cluster\.network\.)?$k\`" && ok "network: $k" || nok "network: $k is not in $readme"
done
for part in fault neighbour; do
  for k in $(keys sim/app/read_network.c ${part}_keys); do
    grep "\`cluster\.network\.$part\`" $readme | grep -q "\`$k\`" && ok "$part: $k" || nok "$part: $k is not in $readme"
  done
done
for k in $(keys sim/app/read_network.c fidelity_keys); do
  grep '`run.fidelity`' $readme | grep -q "\`$k\`" && ok "fidelity: $k" || nok "fidelity: $k is not in $readme"
done
finish
