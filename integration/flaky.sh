#!/usr/bin/env bash
# Runs the tests that match RUN many times (TIMES, 100) while other processes use all
# processors and the disk, and prints how often each failed.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

[ -n "${RUN:-}" ] || die "name the tests: make flaky RUN=Pattern"
export TIMES=${TIMES:-100} RUN WORKERS=${WORKERS:-1}

HOGS=()
SCRATCH=$(mktemp -d "$TOP/build/flaky.XXXXXX")
stop() {
	kill "${HOGS[@]}" 2>/dev/null || true
	wait
	rm -rf "$SCRATCH"
}
trap stop EXIT

hog_processor() { while :; do :; done; }
hog_disk() { while :; do dd if=/dev/zero of="$SCRATCH/hog" bs=1M count=64 conv=fsync status=none; done; }

main() {
	local status=0 lane
	for _ in $(seq "$(nproc)"); do
		hog_processor &
		HOGS+=($!)
	done
	hog_disk &
	HOGS+=($!)
	for lane in unit root; do
		integration/lane.sh "$lane" || status=1
	done
	printf '\n%8s %8s  test\n' runs failures
	sed -nE 's/^--- (PASS|FAIL): ([^ ]+) .*/\1 \2/p' build/lanes/{unit,root}.log |
		awk '{runs[$2]++; if ($1 == "FAIL") bad[$2]++} END {for (t in runs) printf "%8d %8d  %s\n", runs[t], bad[t], t}' | sort -k3
	return $status
}

main
