#!/bin/sh
# shellcheck disable=SC2015,SC2046 # ok never fails; pkg-config gives words
# The C library: the examples in C (shared and static) and Python give what the program gives.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
build=$(dirname "$CLUSTERSIM")
none () { skip "the library" "$1"; finish; exit 0; }
[ -z "$SANITIZED" ] || none "sanitizers must be in the program that loads it"
[ -e "$build/libclustersim.so.0" ] && [ -e "$build/libclustersim.a" ] || none "not built (make lib)"
cc=$(command -v cc || command -v gcc) || none "no C compiler here"
for tp in 2 4 8; do
  sim predict gpt3-175b-h100 --set parallel.tp=$tp --format csv
  [ $rc -ne 0 ] || sed -n 2p "$out" | awk -F, -v tp=$tp '{ printf "%s %.4f\n", tp, $6 }'
done >"$tmp/want"
same () { awk 'NR > 1 && NF == 4 { print $1, $2 }' "$out" | cmp -s - "$tmp/want" && [ -s "$tmp/want" ] && ok "$1" || nok "$1"; }

"$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror -Isim/include sim/examples/predict.c -o "$tmp/shared" -L"$build" -lclustersim \
  -Wl,-rpath,"$build" 2>"$err" && ok "C99 compiles it" || nok "C99 compiles it"
"$tmp/shared" gpt3-175b-h100 >"$out" 2>"$err"
same "C, shared"
"$cc" -Isim/include sim/examples/predict.c -o "$tmp/static" "$build/libclustersim.a" \
  $(pkg-config --libs glib-2.0 libcjson expat yaml-0.1 sqlite3) -lm 2>"$err" && ok "linked statically" || nok "linked statically"
"$tmp/static" gpt3-175b-h100 >"$out" 2>"$err"
same "C, static"
"$tmp/shared" nowhere >"$out" 2>"$err" && nok "an error is told" || { grep -q 'unknown scenario' "$err" && ok "an error is told" || nok "an error is told"; }
if command -v g++ >/dev/null; then
  echo '#include <clustersim.h>
int main () { return clustersim_version ()[0] == 0; }' >"$tmp/a.cc"
  g++ -Isim/include "$tmp/a.cc" -o "$tmp/cpp" -L"$build" -lclustersim -Wl,-rpath,"$build" 2>"$err" && "$tmp/cpp" && ok "C++" || nok "C++"
else
  skip "C++" "no g++ here"
fi
if command -v python3 >/dev/null; then
  CLUSTERSIM_LIBRARY=$build/libclustersim.so.0 python3 sim/examples/predict.py gpt3-175b-h100 >"$out" 2>"$err"
  same "Python"
else
  skip "Python" "no python3 here"
fi
# Only what the header tells is seen.
if command -v nm >/dev/null; then
  nm -D --defined-only "$build/libclustersim.so.0" | awk '{ print $3 }' | sort >"$tmp/seen"
  grep -o 'clustersim_[a-z_]* (' sim/include/clustersim.h | tr -d ' (' | sort -u | grep -v '_API$' >"$tmp/told"
  comm -3 "$tmp/seen" "$tmp/told" >"$tmp/differ"
  [ ! -s "$tmp/differ" ] && ok "names are those of the header" || nok "names are those of the header" "$(cat "$tmp/differ")"
fi
finish
