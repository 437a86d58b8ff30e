#!/bin/sh
# shellcheck disable=SC2015,SC2046 # ok never fails; pkg-config gives words
# What make install and make deb give: the program, the library, the page, completion; and that uninstall leaves nothing.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
none () { skip "an installation" "$1"; finish; exit 0; }
[ -z "$SANITIZED" ] || none "once is enough"
[ -e Makefile ] && command -v make >/dev/null || none "no source tree or no make here"
[ "$CLUSTERSIM" = "$PWD/build/clustersim" ] || none "not the plain build"
make -s flags-current 2>/dev/null || none "it would be compiled again (another DEV, CC or CFLAGS)"
unset CLUSTERSIM_SCENARIOS CLUSTERSIM_PLOTS

# The installed tree must not lean on the source tree: it is tried from another folder.
make -s install DESTDIR="$tmp/root" PREFIX=/opt/x >"$out" 2>"$err" && ok "make install" || nok "make install"
(cd / && "$tmp/root/opt/x/bin/clustersim" predict gpt3-175b-h100 --format csv) >"$out" 2>"$err"
[ "$(wc -l <"$out")" -eq 2 ] && ok "it finds its scenarios" || nok "it finds its scenarios"
if command -v gnuplot >/dev/null; then
  (cd / && "$tmp/root/opt/x/bin/clustersim" plot scaling "$tmp/root/../../$(basename "$tmp")/none.csv" -o "$tmp/p.svg") >/dev/null 2>"$err"
  grep -q 'none\.csv' "$err" && ok "and its plots" || nok "and its plots"
fi
if command -v pkg-config >/dev/null && command -v gcc >/dev/null; then
  export PKG_CONFIG_PATH="$tmp/root/opt/x/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/root"
  gcc sim/examples/predict.c $(pkg-config --cflags --libs clustersim) -o "$tmp/p" -Wl,-rpath,"$tmp/root/opt/x/lib" 2>"$err" &&
    (cd / && "$tmp/p" gpt3-175b-h100) >"$out" 2>>"$err" && [ "$(wc -l <"$out")" -eq 4 ] &&
    ok "a program by pkg-config, with the data of the installation" || nok "a program by pkg-config"
  unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
fi
page=$tmp/root/opt/x/share/man/man1/clustersim.1
for c in predict sweep list; do grep -q "^\.SS $c" "$page" && ok "the page tells of $c" || nok "the page tells of $c"; done
if command -v groff >/dev/null; then
  groff -man -Tascii -ww -Z "$page" >/dev/null 2>"$err"
  [ ! -s "$err" ] && ok "without a fault of roff" || nok "without a fault of roff"
elif command -v man >/dev/null; then
  man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>"$err"
  [ ! -s "$err" ] && ok "without a fault of roff" || nok "without a fault of roff"
fi

# ---- completion ----
PATH=$tmp/root/opt/x/bin:$PATH
cat >"$tmp/try.bash" <<'SH'
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_clustersim
printf '%s\n' "${COMPREPLY[@]}"
SH
tries () { # NAME PATTERN SHELL-SCRIPT FILE WORDS...
  name=$1 pattern=$2 shell=$3 file=$4
  shift 4
  if command -v "$shell" >/dev/null; then
    "$shell" "$tmp/try.$shell" "$tmp/root/opt/x/share/$file" "$@" >"$out" 2>"$err"
    grep -qx -- "$pattern" "$out" && [ ! -s "$err" ] && ok "$shell: $name" || nok "$shell: $name"
  else
    skip "$shell: $name" "no $shell here"
  fi
}
cat >"$tmp/try.zsh" <<'SH'
file=$1
shift
words=("$@") CURRENT=$#
compadd () { shift; print -l -- "$@" }
_files () { : }
source $file
SH
bash=bash-completion/completions/clustersim zsh=zsh/site-functions/_clustersim
tries "commands" sweep bash $bash clustersim sw
tries "options" --resume bash $bash clustersim sweep --res
tries "options that take a value" --against= bash $bash clustersim predict --ag
tries "scenarios" gpt3-175b-h100 bash $bash clustersim predict gpt3
tries "kinds of list" fabrics bash $bash clustersim list fa
tries "commands" sweep zsh $zsh clustersim sw
tries "options" --resume zsh $zsh clustersim sweep --res
tries "scenarios" gpt3-175b-h100 zsh $zsh clustersim predict gpt3

make -s uninstall DESTDIR="$tmp/root" PREFIX=/opt/x >"$out" 2>"$err"
[ -z "$(find "$tmp/root" ! -type d)" ] && ok "make uninstall leaves nothing" || nok "make uninstall leaves nothing" "$(find "$tmp/root" ! -type d | head -3)"

# ---- a Debian package ----
if command -v dpkg-deb >/dev/null; then
  make -s deb >"$out" 2>"$err"
  deb=$(tail -1 "$out")
  [ -s "$deb" ] && ok "make deb" || nok "make deb"
  dpkg-deb -x "$deb" "$tmp/deb" 2>"$err" && (cd / && "$tmp/deb/usr/bin/clustersim" predict gpt3-175b-h100 --format csv) >"$out" 2>"$err"
  [ "$(wc -l <"$out")" -eq 2 ] && ok "what is in it works" || nok "what is in it works"
  dpkg-deb -c "$deb" >"$out"
  grep -q 'root/root' "$out" && ok "its files are root's" || nok "its files are root's"
  [ -e "$tmp/deb/usr/share/man/man1/clustersim.1.gz" ] && ok "with a page" || nok "with a page"
  missing=0
  for p in $(dpkg-deb -f "$deb" Depends | tr -d ,); do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing=1; done
  ldd "$tmp/deb/usr/bin/clustersim" | grep -q 'not found' && nok "needs what is installed" || { [ $missing -eq 0 ] && ok "needs what is installed" || nok "needs what is installed"; }
  if command -v lintian >/dev/null; then lintian --fail-on error --suppress-tags no-changelog "$deb" >"$out" 2>"$err" && ok "lintian" || nok "lintian"; fi
else
  skip "a Debian package" "no dpkg-deb here"
fi
finish
