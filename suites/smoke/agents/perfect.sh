#!/bin/sh
# An agent that knows the tasks.
case "$BENCH_TASK" in
hello) echo hello > hello.txt ;;
sum) awk '{ n += $1 } END { print n }' numbers.txt > sum.txt ;;
half) echo 0.75 ;;
esac
