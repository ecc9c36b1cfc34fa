#!/usr/bin/env bash
# Runs one item of a lane's queue, item.sh ITEMS FOLDER [FILE]: the tests of a
# package, or of one file of it, that ITEMS/chosen names. The output is printed in one
# piece at the end; a lane with one worker prints it at once.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

ITEMS=$1 FOLDER=$2 FILE=${3:-}

execute() {
	local began=$SECONDS word=ok status=0 wanted
	local -a short=(-test.short) worker=()
	local tests=$TOP/build/tests
	if long; then short=() tests+=-race; fi
		# The time, because a killed run leaves its cgroups, and ids of processes come again.
	if [ -n "$FILE" ]; then worker=("$TOP/integration/worker.sh" "clove-worker-$$-$EPOCHSECONDS"); fi
	wanted=$(awk -v folder="$FOLDER" -v file="$FILE" '$1 == folder && (file == "" || $2 == file) {print $3}' "$ITEMS/chosen" | pattern)
	(cd "$FOLDER" && CLOVE_BIN_DIR=$TOP/bin exec "${worker[@]}" "$tests/$(binary_of "$FOLDER")" \
		-test.v -test.run="$wanted" -test.timeout=120m -test.count="${TIMES:-1}" "${short[@]}" </dev/null) || status=$?
	[ $status = 0 ] || word=FAIL
	printf '%s\t%s %s\t%ds\n' "$word" "$FOLDER" "$FILE" $((SECONDS - began))
	return $status
}

main() {
	local status=0 log
	if [ -z "$FILE" ]; then
		execute 2>&1
		return
	fi
	log=$ITEMS/${FOLDER//\//-}-$FILE.log
	execute >"$log" 2>&1 || status=$?
	flock "$ITEMS/chosen" cat "$log"
	return $status
}

main
