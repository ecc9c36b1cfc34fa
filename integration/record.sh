#!/usr/bin/env bash
# Stores the result of the last `make test-all`, record.sh STATUS, in integration/last-run.txt,
# and updates docs/testing.md. Both files must be committed.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

processors() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c | sed -E 's/^ +([0-9]+) /\1 x /'; }

{
	printf 'commit  %s\ndate    %s\nresult  %s\n' "$(cat build/lanes/commit)" "$(date -u +%F)" "$([ "$1" = 0 ] && echo green || echo RED)"
	printf 'kernel  %s\ncpu     %s\n\n' "$(uname -r)" "$(processors)"
	for part in "${@:2}"; do cat "build/lanes/$part.result"; done
	printf '\n'
	cat build/lanes/*.summary
} >integration/last-run.txt
go test -tags "$TAGS" -run '^TestTestingIsDocumented$' -count=1 ./internal/doctest -update >/dev/null ||
	die "cannot make docs/testing.md from integration/last-run.txt"
say "integration/last-run.txt and docs/testing.md are new: commit them"
