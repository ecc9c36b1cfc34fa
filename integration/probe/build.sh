#!/bin/sh
# Builds the probe: build.sh FILE. Static, so that it runs in any root.
set -eu
cd "$(dirname "$0")/src"
case $1 in
/*) out=$1 ;;
*) out=$OLDPWD/$1 ;;
esac
exec gcc -std=gnu11 -O1 -static -Wall -Wextra -Werror -D_GNU_SOURCE -o "$out" ./*.c
