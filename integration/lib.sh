# shellcheck shell=bash
# What every script of integration/ shares. Source it after `set -eu`.

# Everything is built and tested with these tags; root adds the tests that
# need privilege.
# shellcheck disable=SC2034 # read by the scripts that source this file
TAGS=seccomp,urfave_cli_no_docs

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$TOP" || exit

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

die() {
	say "error: $*"
	exit 1
}

# root_packages lists, for the lane root or vm, the packages that hold tests in
# *_root_test.go files; for vm also those of *_vm_test.go files, which change the
# machine that they run on and exist only where the tag vm is given.
root_packages() {
	go list -tags "$TAGS,root,$1" -f '{{range .TestGoFiles}}{{$.ImportPath}} {{.}}
{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{.}}
{{end}}' ./... | sed -nE "s/ .*_(root|$1)_test\.go\$//p" | sort -u
}

# root_tests prints, for `go test -run`, a pattern of exactly the tests of that
# lane that stand in such files (the unit lane runs the others), or $RUN.
root_tests() {
	local names
	if [ -n "${RUN:-}" ]; then
		printf '%s' "$RUN"
		return
	fi
	names=$(git ls-files -co --exclude-standard '*_root_test.go' "*_$1_test.go" |
		xargs -r sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*\*testing\.T).*/\1/p' | sort -u | paste -sd'|')
	[ -n "$names" ] || die "no test stands in any *_root_test.go file"
	printf '^(%s)$' "$names"
}
