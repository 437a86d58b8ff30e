#!/usr/bin/perl
# Functions of at most 70 lines and files of at most 600: above that a warning, above 90 and 700 a finding.
# Relies on the format: a function's braces stand in the first column.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;

my ($soft_function, $hard_function) = (70, 90);
my ($soft_file, $hard_file)         = (600, 700);

for my $file (files(qr/\.(c|h|cu|cuh)$/)) {
    my @lines = split /\n/, text($file);
    my $n = @lines;
    if ($n > $hard_file) { finding($file, $n, 'file-length', "$n lines (at most $hard_file)") }
    elsif ($n > $soft_file) { warning($file, $n, "$n lines (aim at $soft_file)") }

    my ($start, $name, @seen);
    for my $i (0 .. $#lines) {
        @seen = ($i, $1) if $lines[$i] =~ /^(\w+) ?\(/;
        ($start, $name) = @seen if $lines[$i] =~ /^\{/ && @seen;
        next unless $lines[$i] =~ /^\}/ && defined $start;
        my $length = $i - $start + 1;
        if ($length > $hard_function) {
            finding($file, $start + 1, 'function-length', "$name: $length lines (at most $hard_function)");
        } elsif ($length > $soft_function) {
            warning($file, $start + 1, "$name: $length lines (aim at $soft_function)");
        }
        undef $start;
    }
}
finish('length');
