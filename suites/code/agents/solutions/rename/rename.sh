#!/bin/sh
for name in *.txt; do
    [ -e "$name" ] && mv -- "$name" "${name%.txt}.md"
done
exit 0
