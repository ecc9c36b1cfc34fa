#!/bin/sh
# Prints the numbers of those arguments that name no program here.
n=0
for program; do
	n=$((n + 1))
	case $program in
	*/*) test -f "$program" -a -x "$program" ;;
	*) command -v "$program" >/dev/null ;;
	esac || echo "$n"
done
