#!/usr/bin/env bash
# For use during development: lint, the unit lane (with Go's cache of results), and the root
# tests of the packages that changed since BASE (main), committed or not.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

# changed prints the folders of changed Go files, and changed files of root tests as they are.
changed() {
	local since
	since=$(git merge-base HEAD "${BASE:-main}")
	{
		git diff --name-only "$since"
		git ls-files -o --exclude-standard
	} | sed -nE '/_root_test\.go$/p; /_root_test\.go$/!s,/[^/]*\.go$,,p' | sort -u
}

main() {
	local status=0
	FOLDERS=$(changed | paste -sd' ')
	export FOLDERS
	integration/lint.sh || status=1
	integration/lane.sh unit || status=1
	if [ -n "$(chosen root)" ]; then
		integration/prebuild.sh
		integration/lane.sh root || status=1
	fi
	say "$([ $status = 0 ] && echo ok || echo FAILED) in $SECONDS s; root tests of: ${FOLDERS:-nothing}"
	return $status
}

main
