#!/bin/bash
# Runs inside the vm lane's machine, from the work disk that run.sh made:
#
#   plan       one package a line: its test binary, import path and folder
#   pattern    which tests run
#   tests/     the test binaries     bin/   clove's own binaries
#   tree/      the source tree, so that each test finds its testdata
#
# Output goes to one port, results to another: "BINARY EXIT-STATUS" for each
# package as soon as it is known, and "end". A test's output can therefore
# not pass for a result.
set -u
cd /mnt || exit 1
OUTPUT=/dev/virtio-ports/clove.output
RESULTS=/dev/virtio-ports/clove.results
udevadm wait --timeout=120 "$OUTPUT" "$RESULTS" || exit 1
exec 3>"$RESULTS" >"$OUTPUT" 2>&1 || exit 1

# CI=true: nothing is missing in this machine, so nothing may be skipped for it.
export CI=true CLOVE_LANE=vm CLOVE_BIN_DIR=/mnt/bin HOME=/root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

microseconds() { echo "${EPOCHREALTIME/[.,]/}"; }

# test_package says what `go test` would about one package.
test_package() {
	local binary=$1 package=$2 folder=$3 began status took word=FAIL
	began=$(microseconds)
	(cd "tree/$folder" && exec "/mnt/tests/$binary" -test.v -test.run="$(cat /mnt/pattern)" -test.timeout=40m 3>&-) </dev/null
	status=$?
	took=$((($(microseconds) - began) / 1000))
	[ $status -ne 0 ] || word='ok  '
	printf '%s\t%s\t%d.%03ds\n' "$word" "$package" $((took / 1000)) $((took % 1000))
	echo "$binary $status" >&3
}

echo "vm: Linux $(uname -r), $(stat -fc %T /sys/fs/cgroup), up for $(cut -d' ' -f1 /proc/uptime) s"
while read -r binary package folder; do
	test_package "$binary" "$package" "$folder"
done <plan
echo end >&3
