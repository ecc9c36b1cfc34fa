#!/usr/bin/env bash
# Runs one lane of tests, lane.sh unit|root|alone|v2|vm, and prints go test's output for
# the tests that fail; the complete output is in build/lanes/LANE.log.
#
#   unit   needs no privilege; the race detector is on for packages with goroutines
#   root   needs root, on this machine: WORKERS items at a time, each in namespaces of its own
#   alone  root tests that look at the whole machine, or measure it: one at a time
#   v2     what integration/lanes.txt chooses, in the virtual machine with cgroup v2
#   vm     every root test in that machine
#
# RUN=PATTERN chooses tests, TIMES says how often each runs. LONG=1 runs each test completely, and the
# root tests under the race detector.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

LANE=$1
LOG=build/lanes/$LANE.log
ITEMS=build/lanes/$LANE.items

run() {
	case $LANE in
	unit)
				# The race detector sleeps for a second at the end of each process, to find races in
				# its last moments. Only the long modes look for these.
		long || export GORACE=atexit_sleep_ms=0
		run_unit
		;;
	root | alone) run_items ;;
	v2 | vm) integration/vm/run.sh "$LANE" ;;
	*) die "unknown lane $LANE" ;;
	esac
}

# run_unit runs the packages that start goroutines under the race detector. In the others it finds nothing
# in most changes; the long modes run it on all.
run_unit() {
	local -a options=(-v -vet=off -tags "$TAGS" -ldflags '-s -w')
	local -a racing others
	local status=0
	[ -z "${TIMES:-}" ] || options+=(-count="$TIMES")
	[ -z "${RUN:-}" ] || options+=(-run "$RUN")
	if long; then
		go test -race "${options[@]}" ./...
		return
	fi
	mapfile -t racing < <(concurrent)
	mapfile -t others < <(go list -tags "$TAGS" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | sed "s,^$TOP,.," | grep -vxF "$(printf '%s\n' "${racing[@]}")")
	go test -race -short "${options[@]}" "${racing[@]}" || status=1
	go test -short "${options[@]}" "${others[@]}" || status=1
	return $status
}

# concurrent prints the packages in which code or a unit test starts a goroutine, or guards against others.
# Commands read and print: their tests are a quarter of the race detector's time and share nothing.
concurrent() {
	git ls-files -co --exclude-standard '*.go' ':!cmd' | grep -vE '_(root|vm)_test\.go$' |
		xargs grep -lE '^\s*(defer )?go (func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\bsync\.(Mutex|RWMutex)\b|\batomic\.' |
		xargs -n1 dirname | sort -u | sed 's,^,./,'
}

# queue prints the items of the chosen tests, files or packages: first those that
# integration/lanes.txt marks as first, then those with many tests.
queue() {
	awk -v first="$(rows first)" '
		BEGIN {n = split(first, lines, "\n"); for (i = 1; i <= n; i++) early[lines[i]] = 1}
		{print ((($1 " " $3) in early) ? 1000 : 1), $1, $2}' "$ITEMS/chosen" |
		awk -v byfile="$1" '{item = byfile ? $2 " " $3 : $2; weight[item] += $1} END {for (item in weight) print weight[item], item}' |
		sort -k1,1rn -k2 | cut -d' ' -f2-
}

# have_machine waits for the root tests of other checkouts on this machine. Tests in
# workers do not disturb each other; a test that sees the whole machine would take another
# test's processes for its own leftovers. The lock belongs to this process: no test inherits it.
have_machine() {
	local how=$1 began=$SECONDS
	mkdir -p /run/lock
	exec 8>/run/lock/clove-tests
	flock "$how" 8
	[ $((SECONDS - began)) -lt 5 ] || say "waited $((SECONDS - began)) s for other root tests on this machine"
}

# run_items queues the lane's tests: by file if there are several workers, else by package.
run_items() {
	local byfile='' workers=1
	if [ "$LANE" = root ]; then
		workers=${WORKERS:-3}
				# worker.sh says why there are none on cgroup v2.
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

# quiet drops the output of tests that pass. It holds a test's output until the test's end.
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
		# A package can fail without a failed test: it did not build, or its process died.
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
