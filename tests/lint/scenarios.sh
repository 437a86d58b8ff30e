#!/bin/sh
# Each runnable scenario is read by the program (an unknown key is an error there) and has a golden report,
# and each golden report has its scenario. CLUSTERSIM names the program.
set -u
program=${CLUSTERSIM:-build/clustersim}
status=0
[ -d scenarios/train ] || exit 0
if [ ! -e tests/golden/update.sh ]; then
  echo "scenarios: no tests/golden/update.sh, so no golden reports to ask for"
  exit 0
fi
for file in scenarios/train/*.json; do
  [ -e "$file" ] || continue
  name=$(basename "$file" .json)
  if ! ls tests/golden/"$name".* >/dev/null 2>&1; then
    echo "$file: has no golden report (make golden-update) [golden]"
    status=1
  fi
  if [ -x "$program" ] && ! CLUSTERSIM_SCENARIOS=scenarios "$program" predict "$file" --quiet >/dev/null; then
    echo "$file: is refused by $program [scenario]"
    status=1
  fi
done
for golden in tests/golden/*.json; do
  [ -e "$golden" ] || continue
  name=$(basename "$golden" .json)
  if [ ! -e "scenarios/train/$name.json" ]; then
    echo "$golden: has no scenario of that name [golden]"
    status=1
  fi
done
exit $status
