#!/usr/bin/env bash
# gofmt, go vet, staticcheck and shellcheck: all of them, even if one fails.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

# Vet and staticcheck keep their results under the absolute paths of files. Root gives every clone of the
# tree the same path, so that what did not change is not looked at again.
FIXED=/run/clove-lint
if [ "$(id -u)" = 0 ] && [ "$TOP" != "$FIXED" ]; then
	mkdir -p "$FIXED"
	exec unshare --mount sh -c "mount --bind '$TOP' $FIXED && cd $FIXED && exec integration/lint.sh"
fi

status=0

# run_check CHECK COMMAND... names the check that failed.
run_check() {
	local check=$1
	shift
	"$@" || { say "$check failed"; status=1; }
}

# The tree's own files, tracked or about to be.
mapfile -t go_files < <(git ls-files -co --exclude-standard '*.go')
mapfile -t shell_scripts < <(git ls-files -co --exclude-standard '*.sh' .ci/run integration/package/p{ost,re}{inst,rm} deploy/docker/{entrypoint,daemon})

# gofmt prints the files that it would change, and its status is 0 in any case.
unformatted=$(gofmt -l "${go_files[@]}")
run_check "gofmt -w ${unformatted//$'\n'/ }" test -z "$unformatted"
# With the tags root and vm, every file of the tree is looked at.
run_check 'go vet' go vet -tags "$TAGS,root,vm" ./...
run_check staticcheck go tool staticcheck -tags "$TAGS,root,vm" ./...
run_check shellcheck shellcheck -x "${shell_scripts[@]}"
exit $status
