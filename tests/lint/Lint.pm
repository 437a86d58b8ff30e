# Lint.pm: what the lint scripts share: which files, their text without comments and strings, reports.
#
# A finding is let through by a comment on its line or the line above it that says why:
#   /* lint: allow RULE: reason */
package Lint;
use strict;
use warnings;
use File::Find;
use Exporter 'import';
our @EXPORT = qw(files text code lines_at finding warning allowed finish);

my $findings = 0;
my %text;

# Files under the given folders (or the folders of C code) whose name matches, sorted.
sub files {
    my ($pattern, @folders) = @_;
    @folders = grep { -e } @folders ? @folders : qw(sim models calibrate tests);
    my @found;
    find({ no_chdir => 1, wanted => sub { push @found, $_ if -f && m{$pattern} } }, @folders)
        if @folders;
    s{^\./}{} for @found;
    return sort @found;
}

sub text {
    my ($file) = @_;
    $text{$file} //= do {
        open my $in, '<', $file or die "$file: $!\n";
        local $/;
        my $all = <$in>;
        defined $all ? $all : '';
    };
    return $text{$file};
}

sub blank { my ($s) = @_; $s =~ s/[^\n]/ /g; return $s }

# The code alone: comments become blanks and strings lose their content; lines stay where they are.
sub code {
    my $s = text($_[0]);
    $s =~ s{(/\*.*?\*/|//[^\n]*)|("(?:[^"\\\n]|\\.)*")|('(?:[^'\\\n]|\\.)*')}
           {defined $1 ? blank($1) : defined $2 ? '"' . blank(substr $2, 2) . '"' : blank($3)}gse;
    return $s;
}

# Line number of an offset in a text.
sub lines_at { my ($s, $offset) = @_; return 1 + (substr($s, 0, $offset) =~ tr/\n//) }

sub allowed {
    my ($file, $line, $rule) = @_;
    my @lines = split /\n/, text($file), -1;
    for my $i ($line - 1, $line - 2) {
        return 1 if $i >= 0 && defined $lines[$i] && $lines[$i] =~ /lint: allow \Q$rule\E: \S/;
    }
    return 0;
}

sub finding {
    my ($file, $line, $rule, $what) = @_;
    return if allowed($file, $line, $rule);
    print "$file:$line: $what [$rule]\n";
    $findings++;
}

sub warning { my ($file, $line, $what) = @_; print "$file:$line: warning: $what\n" }

sub finish {
    my ($name) = @_;
    print "$name: $findings finding", ($findings == 1 ? '' : 's'), "\n" if $findings;
    exit($findings ? 1 : 0);
}
1;
