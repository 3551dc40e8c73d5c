BEGIN {
    package Test::Deep;
    $INC{'Test/Deep.pm'} = 1;
    sub eq_deeply {
        my ($got, $expected) = @_;
        return !defined($got) && !defined($expected) unless defined($got) && defined($expected);
        return 0 if ref($got) ne ref($expected);
        if (ref($expected) eq 'ARRAY') {
            return 0 if @$got != @$expected;
            for my $i (0 .. $#$expected) { return 0 unless eq_deeply($got->[$i], $expected->[$i]); }
            return 1;
        }
        if (ref($expected) eq 'HASH') {
            return 0 if keys(%$got) != keys(%$expected);
            for my $key (keys %$expected) {
                return 0 unless exists($got->{$key}) && eq_deeply($got->{$key}, $expected->{$key});
            }
            return 1;
        }
        return eq_deeply($$got, $$expected) if ref($expected) eq 'SCALAR' || ref($expected) eq 'REF';
        return $got eq $expected ? 1 : 0;
    }
    sub cmp_deeply {
        my ($got, $expected, $name) = @_;
        return 1 if eq_deeply($got, $expected);
        print STDERR "not deeply equal", (defined($name) ? ": $name" : ""), "\n";
        exit 1;
    }
    no strict 'refs';
    *{"main::$_"} = \&{$_} for qw(eq_deeply cmp_deeply);
}
