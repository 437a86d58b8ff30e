#!/usr/bin/perl
# Names of quantities in public headers end in their unit.
#
# Looked at: fields, parameters and functions of type double, float, gint64 or guint64 in headers that are not
# private. The head noun of a name (its last word, qualifiers such as _max dropped) tells whether it is a
# quantity: one that means time, bytes, a rate, power, energy, money or a frequency must be replaced by, or be
# followed by, a unit. Units have one spelling. Names that look like a quantity and are none stand in
# units.allow with what they hold: NAME, HEADER.h:NAME, or HEADER.h for a whole header.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;

my $unit = qr/(?:s|ms|us|ns|ps|min|h|days|ticks
                |bytes|KiB|MiB|GiB|TiB|kB|MB|GB|TB
                |Bps|kBps|MBps|GBps|TBps|MiBps|GiBps|Mbps|Gbps|Tbps
                |W|w|kW|J|Wh|kWh|Hz|kHz|MHz|GHz|usd|flops|TFLOPs|tflops|GFLOPs)/x;
my $quantity = qr/^(?:time|duration|latency|delay|interval|timeout|period|elapsed|deadline|horizon|stall|runtime
                    |size|mem|memory|traffic|footprint|capacity|volume
                    |bandwidth|bw|busbw|algbw|rate|throughput
                    |power|tdp|energy|price|cost|freq|frequency|clock)$/x;
my $qualifier = qr/_(?:max|min|mean|avg|total|sum|peak|lo|hi|low|high|median|p50|p90|p99|default)$/;
my %wrong = (
    sec => 's', secs => 's', seconds => 's', msec => 'ms', usec => 'us', nsec => 'ns', millis => 'ms', micros => 'us',
    minutes => 'min', hrs => 'h', byte => 'bytes', kb => 'kB', mb => 'MB', gb => 'GB', tb => 'TB',
    kib => 'KiB', mib => 'MiB', gib => 'GiB', bps => 'Bps or Gbps', gbps => 'GBps or Gbps', hz => 'Hz', mhz => 'MHz',
    ghz => 'GHz', watts => 'W', watt => 'W', gflops => 'GFLOPs', dollars => 'usd',
);

my %allow;
if (open my $in, '<', "$FindBin::Bin/units.allow") {
    while (<$in>) { $allow{$1} = 1 if /^([\w.:]+)\s+\S/ }
}
my %used;

sub check_name {
    my ($file, $line, $name) = @_;
    (my $header = $file) =~ s{.*/}{};
    for my $entry ($name, "$header:$name", $header) {
        if ($allow{$entry}) { $used{$entry} = 1; return }
    }
    return if $name =~ /^(?:usd|kwh)_/;    # money and energy are named by their unit first
    my $head = $name;
    1 while $head =~ s/$qualifier//;
    return if $head =~ /_per_\w+$/;    # s_per_byte, usd_per_gpu_hour: the unit is a ratio, spelled out
    my ($last) = $head =~ /([A-Za-z0-9]+)$/ or return;
    return if $head eq 'seconds' || $head eq 'bytes';    # the unit is the whole name
    if (exists $wrong{$last}) {
        finding($file, $line, 'unit', "$name: write the unit as $wrong{$last}");
    } elsif ($last =~ $quantity && $last !~ /^$unit$/) {
        finding($file, $line, 'unit', "$name: say the unit (or list it in units.allow)");
    }
}

for my $file (grep { !/_(priv|private|int|internal)\.h$/ } files(qr/\.h$/, qw(sim models calibrate))) {
    my $code = code($file);
    $code =~ s{^[ \t]*#.*$}{}gm;
    while ($code =~ /\b(?:double|float|gint64|guint64)\s+(?:const\s+)?(?=[\w*])/g) {
        # one declarator after another, until something that is not "name" or "name[...]" follows a comma
        while ($code =~ /\G[\s*]*\b(\w+)\s*((?:\[[^\]]*\]\s*)*)(?=[,;()=])/gc) {
            check_name($file, lines_at($code, $-[1]), $1);
            last unless $code =~ /\G,/gc;
        }
    }
}
for my $name (sort keys %allow) {
    finding("tests/lint/units.allow", 1, 'unused', "$name stands in no public header") unless $used{$name};
}
finish('units');
