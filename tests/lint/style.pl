#!/usr/bin/perl
# What the code must not do: banned calls, hidden state, unfinished marks, sloppy text.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;

# Programs of their own that measure this machine: they read clocks, print samples and end themselves.
my $measures = qr{calibrate/(?:cal_|cpu_ops|trainer)};
# What a user compiles: a program that prints.
my $example = qr{sim/examples/};
# rule, pattern of a called name, where it is fine, what to use
my @banned = (
    [ 'random', qr/rand|random|srand|srandom|rand_r|[dlm]rand48|g_random_\w+|g_rand_new/,
      qr/^$/, 'use a stream of rng.h' ],
    [ 'random', qr/g_rand_\w+/, qr{^tests/}, 'use a stream of rng.h' ],
    [ 'clock', qr/time|clock|gettimeofday|localtime|gmtime|g_get_real_time|g_date_time_new_now\w*/,
      qr/^$measures/, 'results must not know the date' ],
    [ 'clock', qr/g_get_monotonic_time|g_timer_new|clock_gettime/, qr{^(sim/app|tests)/|$measures},
      'simulations know only simulated time' ],
    [ 'string', qr/strcpy|strcat|sprintf|vsprintf|gets|strtok|strncpy|strncat/, qr/^$/,
      'use g_strdup_printf, GString or g_strsplit' ],
    [ 'number', qr/ato[ifl]|atoll|strto[dflu]l?l?|sscanf|fscanf|scanf/, qr/^$/,
      'use g_ascii_strtod or g_ascii_string_to_signed (locale, overflow)' ],
    [ 'process', qr/system|popen|vfork|g_spawn_command_line_\w+/, qr/^$/, 'use g_spawn_sync with argv (no shell)' ],
    [ 'memory', qr/malloc|calloc|realloc|reallocarray|alloca|g_alloca/, qr{^tests/},
      'use g_new' ],
    [ 'exit', qr/exit|_Exit|quick_exit|abort|g_error/, qr{^(sim/app/main\.c|tests/|$measures|$example)},
      'return a GError, or assert what only a programmer can cause' ],
    [ 'stdout', qr/printf|puts|putchar|vprintf|g_print/, qr{^(sim/app/|tests/|$measures|$example)}, 'libraries do not print' ],
    [ 'locale', qr/setlocale|uselocale|newlocale/, qr{^(sim/app/main\.c|tests/)}, 'only main sets the locale' ],
    [ 'hash-order', qr/g_hash_table_(?:iter_init|foreach\w*|get_keys\w*|get_values\w*|find)/, qr{^tests/},
      'hash tables have no order: keep an array for whatever is seen' ],
);
# rule, pattern in the code, where it is fine, why
my @words = (
    [ 'stdout', qr/\bstdout\b/, qr{^(sim/app/|tests/|$measures|$example)}, 'libraries do not print' ],
    [ 'once', qr/^\s*#\s*pragma\s+once/m, qr/^$/, 'use a header guard' ],
    [ 'pragma', qr/^\s*#\s*pragma\s+(?:GCC\s+optimize|STDC\s+FP_CONTRACT|omp)/m, qr/^$/, 'one set of flags for all' ],
    [ 'long-double', qr/\blong\s+double\b/, qr/^$/, 'differs by machine' ],
    [ 'assert', qr/\b(?:assert|G_DISABLE_ASSERT)\b/, qr/^$/, 'use g_assert' ],
);

sub check_calls {
    my ($file, $code) = @_;
    for my $b (@banned) {
        my ($rule, $name, $fine, $instead) = @$b;
        next if $file =~ $fine;
        while ($code =~ /(?<![\w.>])($name)\s*\(/g) {
            finding($file, lines_at($code, $-[0]), $rule, "$1(): $instead");
        }
    }
    # libc's own pairs are for what libc allocated by itself
    while ($file !~ m{^tests/} && $code !~ /\brealpath \(/ && $code =~ /(?<![\w.>])(free|strn?dup)\s*\(/g) {
        finding($file, lines_at($code, $-[0]), 'memory', "$1(): use g_$1");
    }
    # a child that was forked must not run its parent's atexit
    while ($file !~ m{^tests/} && $code !~ /\bfork \(/ && $code =~ /(?<![\w.>])_exit\s*\(/g) {
        finding($file, lines_at($code, $-[0]), 'exit', '_exit() without fork()');
    }
    for my $w (@words) {
        my ($rule, $pattern, $fine, $why) = @$w;
        next if $file =~ $fine;
        while ($code =~ /$pattern/g) {
            finding($file, lines_at($code, $-[0]), $rule, "$&: $why");
        }
    }
}

# Variables that live as long as the program: constant tables are fine, state is not.
sub check_state {
    my ($file, $code) = @_;
    return if $file =~ m{^tests/};
    while ($code =~ /^([ \t]*)(?:static|_Thread_local)\b([^;{}()=]*)([;=\[])/gm) {
        my $decl = $2;
        my $line = lines_at($code, $-[2]);
        next if $decl =~ /\bconst\b|\bvolatile sig_atomic_t\b/;    # what a signal handler sets
        finding($file, $line, 'state', "static variable that is not const:" . ($decl =~ s/\s+/ /gr));
    }
    while ($code =~ /^(?!static|const|__extension__|typedef|extern|return|struct \w+;|enum|union|G_|\s|#|\/|\})([\w \t\*]+?\w)\s*(?:=|;)/gm) {
        my ($decl, $at) = ($1, $-[0]);
        next if $decl !~ /\w[\s*]+\w/ || $decl =~ /\bconst\b/;
        finding($file, lines_at($code, $at), 'state', "global variable: $decl");
    }
}

sub check_guard {
    my ($file, $code) = @_;
    return unless $file =~ m{([^/]+)\.h$} && $file !~ m{^tests/};
    (my $guard = "CLUSTERSIM_\U$1\E_H") =~ s/\W/_/g;
    finding($file, 1, 'guard', "header guard is not $guard")
        unless $code =~ /^\s*#ifndef $guard\n#define $guard\n/;
}

sub check_text {
    my ($file) = @_;
    my $n = 0;
    for my $line (split /\n/, text($file)) {
        $n++;
        finding($file, $n, 'unfinished', 'finish it, or say in the text what is open and why (NEEDSWORK:)')
            if $line =~ /\b(?:TO(?:)DO|FIX(?:)ME|X(?:)XX)\b/;
        finding($file, $n, 'blanks', 'blanks at the end of the line') if $line =~ /[ \t]\r?$/;
        finding($file, $n, 'tab', 'a tab') if $line =~ /\t/ && $file !~ /Makefile|\.mk$|\.csv$/;
    }
    finding($file, $n, 'newline', 'no newline at the end') if $n && $file !~ /\.json$/ && text($file) !~ /\n\z/;
}

for my $file (files(qr/\.(c|h|cu|cuh)$/)) {
    my $code = code($file);
    if ($file =~ /\.(c|h)$/) {
        check_calls($file, $code);
        check_state($file, $code);
        check_guard($file, $code);
    }
    check_text($file);
}
check_text($_)
    for files(qr{(?:\.(?:md|sh|pl|pm|gp|json|supp|allow)|/run|Makefile)$},
              qw(Makefile README.md .ci tests calibrate models plots scenarios sim));
finish('style');
