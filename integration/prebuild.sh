#!/usr/bin/env bash
# Builds the test binary of each package that has root tests into build/tests,
# for the lanes root, v2 and vm: one binary serves them all. With RACE=1 they are
# built under the race detector, into build/tests-race.
# It also makes the image that tests of clove's own image begin with.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

OUT=build/tests${RACE:+-race}

# base makes what stands in for Debian's image, once on each machine. The tests that use it run
# in network namespaces of their own, where no archive is reached.
base() {
	[ "$(id -u)" = 0 ] || return 0
	integration/testdata/base.sh || say "there is no base image: the tests of clove's own image will fail"
}

main() {
	local folder began=$SECONDS
	mkdir -p "$OUT"
	base &
	every_test | cut -d' ' -f1 | sort -u | while read -r folder; do
		printf '%s\0%s\0' "$OUT/$(binary_of "$folder")" "./$folder"
	done | xargs -0 -P "$(nproc)" -n 2 go test -c -vet=off ${RACE:+-race} -tags "$TAGS,root,vm" -ldflags '-s -w' -o
	say "test binaries took $((SECONDS - began)) s"
	wait
}

main
