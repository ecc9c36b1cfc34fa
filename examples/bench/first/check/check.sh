#!/bin/sh
test "$(sh /attempt/three.sh)" = 3
