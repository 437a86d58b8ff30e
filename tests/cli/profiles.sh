#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# The shipped device profiles are what scenarios/hw/fit.sh writes: those with a recipe out of start/ and the tables
# (needs CLUSTERSIM_SHARED, the folder that holds data/), the others their file in start/ as it stands. The large tables
# take half a minute; `make profiles` does them all, here are those of a few hundred samples.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
hw=scenarios/hw
: >"$out"
: >"$err"

missing=
for f in "$hw"/*.json; do [ -f "$hw/start/${f##*/}" ] || missing="$missing ${f##*/}"; done
[ -z "$missing" ] && ok "every shipped profile has its start" || nok "every shipped profile has its start" "$missing"

missing=
for f in "$hw"/start/*.json; do
  name=$(basename "$f" .json)
  grep -q "^$name " $hw/recipes.txt || cmp -s "$f" "$hw/$name.json" || missing="$missing $name"
done
[ -z "$missing" ] && ok "a profile without a recipe is its start" || nok "a profile without a recipe is its start" "$missing"

missing=
while read -r name _; do
  case $name in '#'* | '') ;; *) [ -f "$hw/start/$name.json" ] || missing="$missing $name" ;; esac
done <$hw/recipes.txt
[ -z "$missing" ] && ok "every recipe is of a profile" || nok "every recipe is of a profile" "$missing"

small="A100-PCIe-40GB A40-48GB H100-PCIe-80GB H20-SXM-96GB H800-PCIe-80GB L20-48GB L4-24GB MI210-64GB MI300X-192GB
RTX-3090-24GB RTX-4090-24GB T4-16GB V100-SXM2-16GB"
if [ -z "${CLUSTERSIM_SHARED:-}" ]; then
  skip "fitted anew they are the same" "CLUSTERSIM_SHARED is not set"
elif [ -f "$hw/fit.sh" ]; then
  # shellcheck disable=SC2086
  $hw/fit.sh "$CLUSTERSIM_SHARED/data" "$tmp/hw" $small >"$out" 2>"$err"
  rc=$?
  for name in $small; do diff "$tmp/hw/$name.json" "$hw/$name.json" >>"$out" || rc=1; done
  [ $rc -eq 0 ] && ok "fitted anew they are the same" || nok "fitted anew they are the same"
fi
finish
