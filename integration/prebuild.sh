#!/usr/bin/env bash
# Builds the test binary of each package that has root tests into build/tests,
# for the lanes root, v2 and vm: one binary serves them all. With RACE=1 they are
# built under the race detector, into build/tests-race.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

OUT=build/tests${RACE:+-race}

main() {
	local began=$SECONDS
	local -a folders
	mapfile -t folders < <(every_test | cut -d' ' -f1 | sort -u | sed 's,^,./,')
	mkdir -p "$OUT"
	go test -c -vet=off ${RACE:+-race} -tags "$TAGS,root,vm" -ldflags '-s -w' -o "$OUT/" "${folders[@]}"
	say "test binaries took $((SECONDS - began)) s"
}

main
