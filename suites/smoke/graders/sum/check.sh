#!/bin/sh
# The sum of numbers.txt, which agents find in their workspace, is 10.
test "$(cat /attempt/sum.txt)" = 10
