#!/bin/sh
# Rewrites the golden reports of the shipped scenarios and shows what moved.
set -eu
: "${CLUSTERSIM:=build/clustersim}"
for f in scenarios/train/*.json; do
  name=$(basename "$f" .json)
  "$CLUSTERSIM" predict "$f" --format json > "tests/golden/$name.json.new"
  "$CLUSTERSIM" predict "$f" > "tests/golden/$name.txt.new"
  for kind in json txt; do
    if [ -f "tests/golden/$name.$kind" ]; then
      diff -u "tests/golden/$name.$kind" "tests/golden/$name.$kind.new" || true
    fi
    mv "tests/golden/$name.$kind.new" "tests/golden/$name.$kind"
  done
done
