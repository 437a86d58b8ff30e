#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# explain: what it says is taken is taken: a number that it leaves out changes nothing.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
done_with "text" explain gpt3-175b-h100
for part in '^equations' '^memory of stage' '^the range' 'taken: [0-9]* measured, [0-9]* of the vendor, [0-9]* assumed'; do
  grep -Eq "$part" "$out" && ok "tells: $part" || nok "tells: $part"
done
done_with "all numbers" explain gpt3-175b-h100 --all --format json
# One object a line; every ninth of those that are not taken. NAME:/a/b → cluster.gpu.a.b or software.a.b.
tr -d '\n' <"$out" | sed 's/{ *"name": "\(hw\|software\)/\n&/g' | grep '"used": false' |
  sed -n 's/^{ *"name": "\([^"]*\)", *"value": \([^,]*\),.*/\1 \2/p' | awk 'NR % 9 == 1' >"$tmp/left"
sim predict gpt3-175b-h100 --format json
answer () { grep -E '"(step_time_s|peak_bytes|mfu|fingerprint)"' "$out"; }
answer >"$tmp/base"
changed='' tried=0
while read -r name value; do
  case $name in hw/*) key=cluster.gpu ;; software/*) key=software ;; *) continue ;; esac
  key=$key$(echo "${name#*:}" | tr / .).value
  sim predict gpt3-175b-h100 --format json --set "$key=$(awk -v v="$value" 'BEGIN { printf "%.9g", v * 0.98 }')"
  [ $rc -eq 0 ] || continue
  tried=$((tried + 1))
  answer | cmp -s "$tmp/base" - || changed="$changed $name"
done <"$tmp/left"
[ $tried -ge 5 ] && [ -z "$changed" ] && ok "$tried numbers that are not taken change nothing" ||
  nok "numbers that are not taken" "tried $tried, changed:$changed"
finish
