#!/usr/bin/env bash
# All of `make test` after the build: lint, the package, then every lane even when one
# fails, then one summary.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

status=0 summary=
rm -rf build/lanes

# note NAME COMMAND... runs one part and remembers how it ended.
note() {
	local name=$1 began=$SECONDS word=ok
	shift
	"$@" || { word=FAILED status=1; }
	summary+=$(printf '%-6s %-6s %4d s' "$name" "$word" $((SECONDS - began)))$'\n'
}

note lint integration/lint.sh
note deb make --no-print-directory deb
for lane in unit root vm; do
	note "$lane" integration/lane.sh "$lane"
done

printf '\n%s' "$summary"
cat build/lanes/*.summary
exit $status
