#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# fit errors, validate --cross: the shipped ranges are those that the shipped table gives.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
table=$CLUSTERSIM_SCENARIOS/published/runs.csv

done_with "the errors of the table" fit errors "$table" -o "$tmp/errors.json" --quiet
grep -q 'mean of the .* sources' "$out" && ok "tells the coverage by source" || nok "tells the coverage by source"
# Digits beyond the fourth are the machine's.
digits () { sed 's/\(\.[0-9]\{4\}\)[0-9]*/\1/' "$1"; }
digits "$tmp/errors.json" >"$tmp/made"
digits "$CLUSTERSIM_SCENARIOS/published/errors.json" | diff - "$tmp/made" >"$out" &&
  ok "scenarios/published/errors.json is what it gives" ||
  nok "scenarios/published/errors.json is what it gives" "tests/readme-update.sh writes it anew"
done_with "groups left out" validate "$table" --class A --cross source --quiet --format json
grep -q '"unseen"' "$out" && ok "tells the error on unseen groups" || nok "tells the error on unseen groups"
refused "a column that is not there" 2 '"flavour" is missing' validate "$table" --cross flavour
finish
