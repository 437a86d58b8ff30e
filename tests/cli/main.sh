#!/bin/sh
# The program itself: overview, help, version, unknown commands, exit status, one line of error.
program=${CLUSTERSIM:-build/clustersim}
n=0
out=$(mktemp) || exit 1
err=$(mktemp) || exit 1
trap 'rm -f "$out" "$err"' EXIT

# check NAME STATUS STDOUT-PATTERN STDERR-PATTERN ARGS...: patterns as in case; an error is one line.
check () {
  name=$1 status=$2 wanted_out=$3 wanted_err=$4
  shift 4
  n=$((n + 1))
  "$program" "$@" >"$out" 2>"$err"
  got=$?
  verdict="ok"
  [ "$got" -eq "$status" ] || verdict="not ok"
  # shellcheck disable=SC2254
  case $(cat "$out") in $wanted_out) ;; *) verdict="not ok" ;; esac
  # shellcheck disable=SC2254
  case $(cat "$err") in $wanted_err) ;; *) verdict="not ok" ;; esac
  [ "$(wc -l <"$err")" -le 1 ] || verdict="not ok"
  echo "$verdict $n - $name"
  [ "$verdict" = ok ] || { echo "# status $got"; sed 's/^/# /' "$out" "$err"; }
}

check "overview" 0 "clustersim predicts*clustersim --help" ""
check "help" 0 "Usage: clustersim COMMAND*Exit status: 0 done*" "" --help
check "help, short" 0 "Usage: clustersim COMMAND*" "" -h
check "help, as a command" 0 "Usage: clustersim COMMAND*" "" help
check "version" 0 "clustersim [0-9]*.[0-9]*.[0-9]*" "" --version
check "unknown command" 2 "" 'clustersim: unknown command (found "qqqqq"; *clustersim --help)' qqqqq
check "unknown option" 2 "" 'clustersim: unknown option (found "--qqq"; *' --qqq
check "help for an unknown command" 2 "" 'clustersim: unknown command (found "qqqqq"; *' help qqqqq
check "control characters in a name" 2 "" 'clustersim: unknown command (found "a\\nb\\u001b"; *' "$(printf 'a\nb\033')"
check "empty name" 2 "" 'clustersim: unknown command (found ""; *' ""

n=$((n + 1))
if [ -c /dev/full ]; then
  "$program" --help >/dev/full 2>"$err"
  if [ $? -eq 1 ] && grep -q '^clustersim: standard output: cannot be written (' "$err"; then
    echo "ok $n - full disk"
  else
    echo "not ok $n - full disk"
  fi
else
  echo "ok $n - full disk # SKIP no /dev/full here"
fi

# What the overview tells to try works as printed.
"$program" | sed -n 's/^  clustersim //p' >"$out"
while read -r line; do
  n=$((n + 1))
  # shellcheck disable=SC2086
  if "$program" $line >/dev/null 2>"$err" </dev/null; then
    echo "ok $n - clustersim $line"
  else
    echo "not ok $n - clustersim $line"
    sed 's/^/# /' "$err"
  fi
done <"$out"
echo "1..$n"
