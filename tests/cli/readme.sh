#!/bin/sh
# The example and the accuracy table of README.md are what the program prints.
: "${CLUSTERSIM:=build/clustersim}"
export CLUSTERSIM
echo 1..1
if sh tests/readme-update.sh --check > "${TMPDIR:-/tmp}/readme.$$" 2>&1; then
  echo "ok 1 - README.md holds true output"
else
  echo "not ok 1 - README.md holds true output (tests/readme-update.sh writes it anew)"
  sed 's/^/# /' "${TMPDIR:-/tmp}/readme.$$"
fi
rm -f "${TMPDIR:-/tmp}/readme.$$"
