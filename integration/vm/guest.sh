#!/bin/bash
# Runs inside the vm lane's machine, from the work disk that run.sh made:
#
#   plan       one package a line: its test binary, and its folder
#   tests/     the test binaries, and for each a pattern of the tests that run
#   short      is there when a sample of each test is enough
#   bin/       clove's own binaries
#   tree/      the source tree, so that each test finds its testdata
#   deb/       clove's package in two versions
#
# A test that needs a reboot of the machine writes "soft PATTERN" or "hard
# PATTERN" to the file reboot. When its package has passed so far, the machine
# reboots, orderly or at once, and that package continues with the tests that match
# PATTERN; CLOVE_BOOT counts from 1. The files boot and finished keep this state.
#
# Output goes to one port, results to another: "BINARY EXIT-STATUS" for each
# package as soon as it is known, and "end". So a test's output cannot be
# mistaken for a result.
set -u
cd /mnt || exit 1
OUTPUT=/dev/virtio-ports/clove.output
RESULTS=/dev/virtio-ports/clove.results
udevadm wait --timeout=120 "$OUTPUT" "$RESULTS" || exit 1
exec 3>"$RESULTS" >"$OUTPUT" 2>&1 || exit 1

# CI=true: this machine has everything, so no test may be skipped.
export CI=true CLOVE_LANE=vm CLOVE_BIN_DIR=/mnt/bin CLOVE_DEB_DIR=/mnt/deb HOME=/root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

microseconds() { echo "${EPOCHREALTIME/[.,]/}"; }

# test_package prints the result as `go test` would.
test_package() {
	local binary=$1 folder=$2 pattern=$3 began status took word=FAIL
	began=$(microseconds)
	(cd "tree/$folder" && exec "/mnt/tests/$binary" -test.v "${SHORT[@]}" -test.run="$(cat "$pattern")" -test.timeout=120m 3>&- 4<&-) </dev/null
	status=$?
	if [ $status -eq 0 ] && [ -s reboot ]; then
		restart_machine
	fi
	took=$((($(microseconds) - began) / 1000))
	[ $status -ne 0 ] || word='ok  '
	printf '%s\t%s\t%d.%03ds\n' "$word" "$folder" $((took / 1000)) $((took % 1000))
	echo "$binary $status" >&3
}

# restart_machine carries out the order in the file reboot.
restart_machine() {
	local how pattern
	read -r how pattern <reboot
	rm reboot
	echo "$pattern" >next-pattern
	echo $((BOOT + 1)) >boot
	sync
	echo "vm: $how reboot"
	trap 'exit 0' TERM # at the end of the service
	case $how in
	soft) systemctl --no-block start reboot.target ;; # as `systemctl reboot` without logind
	hard) echo b >/proc/sysrq-trigger ;;
	esac
	sleep infinity &
	wait
}

SHORT=()
if [ -e short ]; then SHORT=(-test.short); fi
BOOT=$(cat boot 2>/dev/null || echo 1)
touch finished
echo "vm: Linux $(uname -r), $(stat -fc %T /sys/fs/cgroup), up for $(cut -d' ' -f1 /proc/uptime) s"
while read -r binary folder <&4; do
	if grep -qx "$binary" finished; then continue; fi
	pattern=/mnt/tests/$binary.pattern
	if [ "$BOOT" != 1 ]; then pattern=/mnt/next-pattern; fi
	export CLOVE_BOOT=$BOOT
	test_package "$binary" "$folder" "$pattern"
	BOOT=1
	rm -f boot reboot
	echo "$binary" >>finished
done 4<plan
echo end >&3
