#!/usr/bin/perl
# Who may include whom. The direction is sim/app -> models -> sim/engine, cJSON is for sim/app alone, CUDA code
# includes nothing of the host program, and calibrate/fit knows only GLib.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;

my @folders = qw(sim/engine models sim/app calibrate);
my %may = (    # folder => folders whose headers it may include
    'sim/engine' => ['sim/engine'],
    'models'     => [ 'models', 'sim/engine' ],
    'calibrate'  => ['calibrate'],
    'sim/app'    => [@folders],
    'tests'      => [ @folders, 'tests' ],
);

sub folder_of {
    my ($file) = @_;
    for my $f (@folders, 'tests') { return $f if index($file, "$f/") == 0 }
    return '';
}

my %home;    # header name -> folder
for my $h (files(qr/\.(h|cuh)$/)) {
    (my $name = $h) =~ s{.*/}{};
    my $folder = folder_of($h);
    finding($h, 1, 'unique-header', "$name stands in $home{$name} too")
        if exists $home{$name} && $home{$name} ne $folder;
    $home{$name} = $folder;
}

for my $file (files(qr/\.(c|h|cu|cuh)$/)) {
    my $folder = folder_of($file);
    my $n = 0;
    for my $line (split /\n/, text($file)) {
        $n++;
        next unless $line =~ /^\s*#\s*include\s*([<"])([^>"]+)[>"]/;
        my ($quote, $path) = ($1, $2);
        if ($quote eq '<') {
            finding($file, $n, 'json-in-app', "<$path> is for sim/app alone")
                if $path =~ /cjson/i && $folder !~ m{^(sim/app|tests)$};
            finding($file, $n, 'cuda-apart', "<$path> in host code")
                if $path =~ /^(cuda|nccl|cublas|cudnn)/ && $file !~ /\.(cu|cuh)$/;
            next;
        }
        next if $folder eq 'tests' && $path =~ /\.c$/;    # a test takes its oracle in whole
        (my $name = $path) =~ s{.*/}{};
        my $target = $home{$name};
        if (!defined $target) {
            finding($file, $n, 'include', "\"$path\" is no header of ours (use <> for others')");
        } elsif (!grep { $_ eq $target } @{ $may{$folder} }) {
            finding($file, $n, 'direction', "$folder must not include $target/$name");
        } elsif ($file =~ /\.(cu|cuh)$/ && $name !~ /\.cuh$/) {
            finding($file, $n, 'cuda-apart', "CUDA code includes nothing of the host program ($name)");
        } elsif ($file !~ /\.(cu|cuh)$/ && $name =~ /\.cuh$/) {
            finding($file, $n, 'cuda-apart', "host code includes CUDA code ($name)");
        }
    }
}
finish('includes');
