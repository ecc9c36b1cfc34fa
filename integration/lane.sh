#!/usr/bin/env bash
# Runs one lane of tests, lane.sh unit|root|vm, and shows go test's output
# without the chatter of what passes; all of it stays in build/lanes/LANE.log.
# With RUN=PATTERN in the environment, only the tests that match it run.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

LANE=$1
LOG=build/lanes/$LANE.log

run() {
	case $LANE in
	unit) go test -v -race -tags "$TAGS" ${RUN:+-run "$RUN"} ./... ;;
	root) run_root ;;
	vm) integration/vm/run.sh ;;
	*) die "unknown lane $LANE" ;;
	esac
}

# One package at a time: root tests change the machine, and see it all.
run_root() {
	local packages
	mapfile -t packages < <(root_packages root)
	CLOVE_BIN_DIR=$TOP/bin go test -v -count=1 -p=1 -timeout=40m -tags "$TAGS,root" \
		-run "$(root_tests root)" "${packages[@]}"
}

quiet() { sed -u -E '/^=== (RUN|PAUSE|CONT|NAME) /d; /^ +--- PASS: /d'; }

# count prints how many top-level tests ended so.
count() { grep -cE "^--- $1: " "$LOG" || true; }

main() {
	local status=0 began=$SECONDS passed failed skipped
	mkdir -p build/lanes
	say "$LANE lane"
	run 2>&1 | tee "$LOG" | quiet || status=$?
	passed=$(count PASS) failed=$(count FAIL) skipped=$(grep -cE '^ *--- SKIP: ' "$LOG" || true)
	if [ $((passed + failed + skipped)) = 0 ]; then
		say "the $LANE lane ran no test"
		status=1
	fi
	# A package can fail without a test that does: it did not build, or it died.
	[ $status = 0 ] || [ "$failed" != 0 ] || failed=1
	# The line above a skip is its reason.
	{ grep -B1 -E '^ *--- SKIP: ' "$LOG" || true; } >"build/lanes/$LANE.summary"
	echo "$LANE: $passed passed, $failed failed, $skipped skipped" >>"build/lanes/$LANE.summary"
	cat "build/lanes/$LANE.summary"
	say "$LANE lane took $((SECONDS - began)) s"
	return $status
}

main
