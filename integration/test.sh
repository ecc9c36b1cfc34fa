#!/usr/bin/env bash
# Runs `make test` and, with LONG=1, `make test-all`: every part even if one fails, then one
# summary with wall clock and processor time. If the build fails, nothing else runs.
#
# The virtual machine, which tests the package too, runs beside the other parts. Only the
# lane alone, whose tests need this machine for themselves, waits until it has ended.
#
# RUN=PATTERN runs only the lanes, and in them the matching tests. FROM=PART begins with
# that part, if the parts before it have passed on this commit.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

RESULTS=build/lanes
PARTS=(build deb lint unit root v2 alone)
if long; then PARTS=(build deb lint fuzz unit root v2 alone); fi
if [ -n "${RUN:-}" ]; then PARTS=(build unit root v2 alone); fi

status=0
MACHINE=''
stop() { [ -z "$MACHINE" ] || kill -- "-$MACHINE" 2>/dev/null || true; }
trap stop EXIT

# build installs what the machine lacks and builds programs and tests. Compilers start as soon as they
# can: the packages that are installed beside them are for the tests.
build() {
	local more installing status=0
	more=(lint test engines vm deb runc libraries mcp types)
	if long; then more+=(agents browser); fi
	integration/install.sh build || return 1
	integration/install.sh "${more[@]}" &
	installing=$!
	make --no-print-directory tests || status=1
	! long || RACE=1 integration/prebuild.sh || status=1
	wait $installing || status=1
	return $status
}

# part NAME runs one part and records its result, in a shell of its own: its processor time is that of the
# part's ended processes, without those of the machine beside it.
part() (
	name=$1 began=$SECONDS word=ok shell=$BASHPID
	case $name in
	build) build ;;
	lint) integration/lint.sh ;;
	deb) make --no-print-directory deb VERSION=1.0.0 ;;
	fuzz) integration/fuzz.sh ;;
	*) integration/lane.sh "$name" ;;
	esac || word=FAILED
	printf '%-6s %-6s %5d s %6d s of processor time\n' "$name" "$word" $((SECONDS - began)) "$(processor_time "$shell")" >"$RESULTS/$name.result"
	[ $word = ok ]
)

# wanted prints the parts to run: all, or those from FROM on.
wanted() {
	local name from=${FROM:-}
	for name in "${PARTS[@]}"; do
		if [ "$name" = "$from" ]; then from=''; fi
		if [ -z "$from" ]; then
			echo "$name"
		elif ! grep -q ' ok ' "$RESULTS/$name.result"; then
			die "cannot go on with $FROM: $name has not passed"
		fi
	done
	[ -z "$from" ] || die "there is no part $from (parts: ${PARTS[*]})"
}

commit() { git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown; }

# machine_begins starts the virtual machine's lane in a process group of its own, which
# ends with this script; machine_ends waits for the lane.
machine_begins() {
	set -m
	part "$1" >"$RESULTS/$1.output" 2>&1 </dev/null &
	MACHINE=$!
	set +m
}
machine_ends() {
	say "waiting for the lane $1"
	wait "$MACHINE" || status=1
	MACHINE=''
	cat "$RESULTS/$1.output"
}

slowest() {
	sed -nE 's/^--- (PASS|FAIL): ([^ ]+) \(([0-9.]+)s\)$/\3 \2/p' "$1" | sort -rn | sed -n 1,10p
}

summary() {
	local name
	printf '\nThe slowest tests:\n'
	for name in unit root v2 alone; do
		[ ! -e "$RESULTS/$name.log" ] || slowest "$RESULTS/$name.log" | sed "s/\$/ ($name)/"
	done | sort -rn | sed -n 1,10p | awk '{printf "%8.1f s  %s %s\n", $1, $2, $3}'
	printf '\n'
	for name in "${PARTS[@]}"; do cat "$RESULTS/$name.result"; done
	printf 'sum           %5d s %6d s of processor time\n' "$SECONDS" "$(processor_time $$)"
	cat "$RESULTS"/*.summary
}

main() {
	local name list
	list=$(wanted)
	if [ -z "${FROM:-}" ]; then
		rm -rf "$RESULTS"
		mkdir -p "$RESULTS"
		commit >"$RESULTS/commit"
	elif [ "$(commit)" != "$(cat "$RESULTS/commit")" ]; then
		die "cannot go on with $FROM: the parts before it ran on $(cat "$RESULTS/commit")"
	fi
	case $list in
	build*) part build || die "nothing was tested: the build failed" ;;
	esac
	case $list in
	*deb*) if part deb; then export CLOVE_DEB=build/clove_1.0.0_amd64.deb; else status=1; fi ;;
	esac
	for name in $list; do
		case $name in v2) machine_begins "$name" ;; esac
	done
	for name in $list; do
		case $name in
		build | deb) ;;
		v2) machine_ends "$name" ;;
		*) part "$name" || status=1 ;;
		esac
	done
	summary
	if [ -n "${RUN:-}" ] && ! grep -qE '^--- (PASS|FAIL): ' "$RESULTS"/*.log; then die "no test matches RUN=$RUN"; fi
	if long && [ -z "${RUN:-}" ]; then integration/record.sh $status "${PARTS[@]}"; fi
	return $status
}

main
