#!/bin/sh
# Works, and says so only if it finds itself alone.
left=$(find /workspace /tmp -mindepth 1)
[ -z "$left" ] || { echo "files of another attempt: $left"; exit 1; }
exec perl -e 'my $sum = 0; $sum += $_ for 1 .. 200000; print "$sum\n"'
