#!/usr/bin/env bash
# Runs every fuzz target of the tree for FUZZTIME (10s), one after the other.
# RUN=PATTERN chooses among them. A failing input stays below the package's
# testdata/fuzz, where the unit lane uses it as a seed: commit it with the fix.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

targets() {
	git ls-files -co --exclude-standard '*_test.go' | while read -r path; do
		sed -n "s,^func \(Fuzz[A-Za-z0-9_]*\)(.*\*testing\.F).*,./$(dirname "$path") \1,p" "$path"
	done | grep -E "${RUN:-}" | sort
}

OUTPUT=$(mktemp)
trap 'rm -f "$OUTPUT"' EXIT

# ended_late reports whether a target failed only because its time limit came while a
# worker was busy: Go 1.26 calls that a failure (golang/go#75804), and writes no input.
ended_late() {
	grep -q 'context deadline exceeded' "$OUTPUT" && ! grep -qE 'Failing input written|panic:|fatal error:' "$OUTPUT"
}

main() {
	local folder target passed=0 failed=0 tags=$TAGS began=$SECONDS
	[ "$(id -u)" != 0 ] || tags+=,root
	while read -r folder target; do
		if go test -tags "$tags" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1s "$folder" </dev/null 2>&1 | tee "$OUTPUT" || ended_late; then
			passed=$((passed + 1))
		else
			say "$folder $target FAILED"
			failed=$((failed + 1))
		fi
	done < <(targets)
	say "fuzzing took $((SECONDS - began)) s"
	echo "fuzz: $passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

main
