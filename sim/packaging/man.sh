#!/bin/sh
# The manual page from what the program itself says: man.sh PROGRAM > clustersim.1
set -eu
program=$1
version=$("$program" --version | sed 's/.* //')

# Plain text into roff: backslashes, dots and quotes at the start of lines, dashes.
esc () { sed -e 's/…/.../g' -e 's/\\/\\e/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; }

cat <<ROFF
.TH CLUSTERSIM 1 "" "clustersim $version" "User Commands"
.SH NAME
clustersim \- predict how the training of large models scales on GPU clusters
.SH SYNOPSIS
.B clustersim
.I COMMAND
.RI [ OPTION .\|.\|.]
.RI [ ARGUMENT .\|.\|.]
.SH DESCRIPTION
A discrete-event simulator of one training step and of weeks of training: time, throughput, MFU, where the time goes,
memory of each stage, price, failures, with a range for each answer and the source of every number. A scenario is a JSON
file; its keys are listed in scenarios/README.md. Parts can be given by the name of a file that ships
.RB ( "clustersim list" ).
.SH COMMANDS
ROFF
"$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) *\(.*\)/\1 \2/p' | while read -r c what; do
  printf '.SS %s\n' "$c"
  printf '%s\n' "$what" | esc
  printf '.PP\n.nf\n'
  "$program" "$c" --help | esc
  printf '.fi\n'
done
cat <<'ROFF'
.SH EXIT STATUS
0 done; 1 it could not be done (a file that cannot be written, a limit reached, gnuplot missing); 2 the call or its
input is wrong. Errors are one line on standard error, with file, line and key, what was found and what is allowed.
.SH ENVIRONMENT
.TP
.B CLUSTERSIM_SCENARIOS
a folder that is looked in before those that ship
.TP
.B CLUSTERSIM_PLOTS
the same for the gnuplot scripts of the pictures
.SH EXAMPLES
ROFF
printf '.nf\n'
"$program" --help | sed -n '/^Try:/,$s/^  //p' | esc
printf '.fi\n'
