#!/usr/bin/env bash
# Runs one lane of tests, lane.sh unit|root|alone|v2|vm, and shows what go test prints
# of the tests that fail; all of its output stays in build/lanes/LANE.log.
#
#   unit   needs no privilege; the race detector is on
#   root   needs root, on this machine: WORKERS items at a time, each in namespaces of its own
#   alone  root tests that look at the whole machine, or measure it: one at a time
#   v2     what integration/lanes.txt chooses, in the virtual machine with cgroup v2
#   vm     every root test in that machine
#
# RUN=PATTERN chooses tests, TIMES says how often each runs. LONG=1 runs the whole of each test, and all root tests one
# after the other on the machine itself (root), under the race detector.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

LANE=$1
LOG=build/lanes/$LANE.log
ITEMS=build/lanes/$LANE.items

run() {
	local short=-short
	if long; then short=; fi
	case $LANE in
	unit)
		# The race detector's second of sleep at the end of each process is for races in
		# its last moments: the whole lane looks for these.
		long || export GORACE=atexit_sleep_ms=0
		go test -v -race -vet=off $short ${TIMES:+-count="$TIMES"} -tags "$TAGS" ${RUN:+-run "$RUN"} ./...
		;;
	root | alone) run_items ;;
	v2 | vm) integration/vm/run.sh "$LANE" ;;
	*) die "unknown lane $LANE" ;;
	esac
}

# queue prints the items of the chosen tests, files or packages: those that
# integration/lanes.txt wants first, then the ones with many tests.
queue() {
	awk -v first="$(rows first)" '
		BEGIN {n = split(first, lines, "\n"); for (i = 1; i <= n; i++) early[lines[i]] = 1}
		{print ((($1 " " $3) in early) ? 1000 : 1), $1, $2}' "$ITEMS/chosen" |
		awk -v byfile="$1" '{item = byfile ? $2 " " $3 : $2; weight[item] += $1} END {for (item in weight) print weight[item], item}' |
		sort -k1,1rn -k2 | cut -d' ' -f2-
}

# have_machine waits for the root tests of other checkouts on this machine. Those in
# workers get along with each other; those that see the whole machine take what another
# test has for their own leftovers. The lock goes with this process: no test inherits it.
have_machine() {
	local how=$1 began=$SECONDS
	mkdir -p /run/lock
	exec 8>/run/lock/clove-tests
	flock "$how" 8
	[ $((SECONDS - began)) -lt 5 ] || say "waited $((SECONDS - began)) s for other root tests on this machine"
}

# run_items queues the lane's tests: by file where workers run them, else by package.
run_items() {
	local byfile='' workers=1
	if [ "$LANE" = root ] && ! long; then
		workers=${WORKERS:-3}
		# See worker.sh for why not on cgroup v2.
		if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then workers=1; fi
	fi
	[ "$workers" = 1 ] || byfile=1
	rm -rf "$ITEMS"
	mkdir -p "$ITEMS"
	chosen "$LANE" >"$ITEMS/chosen"
	queue "$byfile" >"$ITEMS/queue"
	[ ! -s "$ITEMS/queue" ] || have_machine "$([ -n "$byfile" ] && echo --shared || echo --exclusive)"
	say "$(wc -l <"$ITEMS/chosen") tests in $(wc -l <"$ITEMS/queue") items, $workers at a time"
	LONG=${LONG:-} RUN=${RUN:-} WORKERS=$workers xargs -r -P "$workers" -L 1 integration/item.sh "$ITEMS" <"$ITEMS/queue" 8>&-
}

# quiet leaves out what the tests that pass print. What a test prints is held until its end is known.
quiet() {
	awk '
		function flush(   test) {for (test in held) printf "%s", held[test]; delete held; now = ""; fflush()}
		/^=== (RUN|PAUSE|CONT|NAME) / {now = $3; sub("/.*", "", now); next}
		/^ *--- PASS: / {delete held[$3]; if ($3 == now) now = ""; next}
		/^--- (FAIL|SKIP): / {printf "%s%s\n", held[$3], $0; delete held[$3]; now = ""; fflush(); next}
		/^PASS$/ {flush(); next}
		/^(FAIL|ok)/ {flush()}
		now != "" {held[now] = held[now] $0 "\n"; next}
		{print; fflush()}
		END {flush()}'
}

# count prints how many top-level tests ended so.
count() { grep -cE "^--- $1: " "$LOG" || true; }

main() {
	local status=0 began=$SECONDS passed failed skipped
	mkdir -p build/lanes
	say "$LANE lane"
	run 2>&1 | tee "$LOG" | quiet || status=$?
	passed=$(count PASS) failed=$(count FAIL) skipped=$(grep -cE '^ *--- SKIP: ' "$LOG" || true)
	if [ $((passed + failed + skipped)) = 0 ] && [ -z "${RUN:-}" ]; then
		say "the $LANE lane ran no test"
		status=1
	fi
	# A package can fail without a test that does: it did not build, or it died.
	[ $status = 0 ] || [ "$failed" != 0 ] || failed=1
	[ "$failed" = 0 ] || say "what failed is above, and in $LOG"
	# The line above a skip is its reason.
	{ grep -B1 -E '^ *--- SKIP: ' "$LOG" || true; } >"build/lanes/$LANE.summary"
	echo "$LANE: $passed passed, $failed failed, $skipped skipped" >>"build/lanes/$LANE.summary"
	cat "build/lanes/$LANE.summary"
	say "$LANE lane took $((SECONDS - began)) s"
	return $status
}

main
