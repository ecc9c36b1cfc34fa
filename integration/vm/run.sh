#!/usr/bin/env bash
# The lanes v2 and vm: boots the machine of image.sh, runs in it the tests that the
# lane chooses from the *_root_test.go and *_vm_test.go files, run.sh v2|vm, and ends
# with those tests' own result. A package without a result has failed, whatever the reason.
#
# More than a few tests are divided between two such machines, side by side: tests run one
# after the other, and an interpreted processor takes only one of the host's.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

LANE=$1
MEMORY=3G
case $LANE in # seconds for boot and all tests, beside other load
v2) TIME_LIMIT=1500 ;;
vm) TIME_LIMIT=10800 ;;
esac
# What runs beside the machine waits for it, for the machine takes longest.
PRIORITY=0
if nice -n -5 true 2>/dev/null; then PRIORITY=-5; fi
ACCELERATOR=tcg,thread=multi
# Without these features the interpreted machine needs about an eighth less time:
# none of them is used by a test.
CPU=max,-la57,-erms,-fsrm,-smap,-smep,-pku,-umip
KVM_TIME_LIMIT=20 # seconds that a kernel under KVM has to say its first word
FEW=20            # tests that are not worth a second boot

WORK='' QEMU='' OUTPUT=''
cleanup() {
	[ -z "$QEMU" ] || kill "$QEMU" 2>/dev/null || true
	[ -z "$WORK" ] || rm -rf "$WORK"
	[ -z "$OUTPUT" ] || rm -f "$OUTPUT"
}
trap cleanup EXIT

# share N prints the chosen tests of machine N, 0 for all of them. Those of systemd stay
# together, for they install the package first: machine 1 has these and fewer others.
share() {
	chosen "$LANE" | awk -v wanted="$1" '
		{share = $1 == "integration/systemd" || others++ % 5 < 2 ? 1 : 2}
		!wanted || share == wanted'
}

# pack SHARE fills $WORK/disk with what guest.sh's comment lists and makes it a disk.
pack() {
	local folder binary disk=$WORK/disk
	mkdir -p "$disk/tests" "$disk/bin" "$disk/tree"
	cp integration/vm/guest.sh "$disk/"
	cp bin/* "$disk/bin/"
	long || touch "$disk/short"
	git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -T - -c -f - | tar -x -C "$disk/tree"
	share "$1" >"$WORK/chosen"
	while read -r folder; do
		binary=$(binary_of "$folder")
		cp "build/tests/$binary" "$disk/tests/"
		awk -v folder="$folder" '$1 == folder {print $3}' "$WORK/chosen" | pattern >"$disk/tests/$binary.pattern"
		echo "$binary $folder" >>"$disk/plan"
	done < <(cut -d' ' -f1 "$WORK/chosen" | sort -u)
	if [ -e "$disk/tests/integration-systemd.test" ]; then debs "$disk/deb"; fi
	# Half as much again: the file system's own needs, and what tests write.
	mkfs.ext4 -q -F -L clove-work -d "$disk" "$WORK/work.ext4" $(($(du -sm "$disk" | cut -f1) * 3 / 2 + 256))M >/dev/null
}

# debs brings clove's package in the versions that integration/systemd installs: the
# first one may have been built before (CLOVE_DEB), the second is for the test of an upgrade.
debs() {
	if [ -n "${CLOVE_DEB:-}" ]; then
		mkdir -p "$1"
		cp "$CLOVE_DEB" "$1/"
	else
		integration/package/build.sh 1.0.0 "$1" >/dev/null
	fi
	if grep -q TestSystemdPackageLife "$WORK/chosen"; then integration/package/build.sh 1.0.1 "$1" >/dev/null; fi
}

# machine becomes qemu, in a subshell: machine LIMIT ACCELERATOR CPU, console to $WORK/console.
# What ends this script, or its process group, ends qemu.
machine() {
	local limit=$1 accelerator=$2 cpu=$3
	shift 3
	exec nice -n "$PRIORITY" timeout --foreground --kill-after=10 "$limit" qemu-system-x86_64 -accel "$accelerator" -cpu "$cpu" -smp 2 -m "$MEMORY" \
		-nodefaults -no-user-config -display none \
		-kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd.img" -serial "file:$WORK/console" "$@"
}

# kvm_works reports whether this host's KVM boots the kernel as far as its first
# words: a /dev/kvm alone promises nothing, least of all inside a machine.
# The kernel is told to stop there: it finds no root and restarts. A host where it
# does not is remembered, for the look takes the whole time limit.
kvm_works() {
	local failed
	failed=$(dirname "$IMAGE")/no-kvm-$(uname -r)
	[ -w /dev/kvm ] && [ ! -e "$failed" ] || return 1
	if kvm_boots; then return; fi
	touch "$failed"
	return 1
}

kvm_boots() {
	(machine "$KVM_TIME_LIMIT" kvm host -no-reboot -append 'console=ttyS0 panic=-1 init=/none root=/none rdinit=/none') \
		>/dev/null 2>&1 || return 1
	grep -q 'Linux version' "$WORK/console"
}

# boot starts the machine and waits until it powers off. It may reboot: its disk
# is a copy on write that lives as long as qemu. One that never comes so far that
# it can power off ends with the time limit.
boot() {
	local accelerator=$1 cpu=$2
	touch "$WORK/output" "$WORK/results"
	TMPDIR=$WORK machine "$TIME_LIMIT" "$accelerator" "$cpu" \
		-append 'console=ttyS0 root=/dev/vda rw quiet panic=-1 systemd.show_status=0 mitigations=off init_on_alloc=0' \
		-drive "file=$IMAGE/disk.ext4,format=raw,if=virtio,snapshot=on" \
		-drive "file=$WORK/work.ext4,format=raw,if=virtio,cache=unsafe" \
		-device virtio-serial-pci \
		-chardev "file,id=output,path=$WORK/output" -device virtserialport,chardev=output,name=clove.output \
		-chardev "file,id=results,path=$WORK/results" -device virtserialport,chardev=results,name=clove.results \
		</dev/null 2>"$WORK/qemu" &
	QEMU=$!
	tail --pid=$QEMU -n +1 -f "$WORK/output"
	wait $QEMU
}

# judge compares the results with the plan.
judge() {
	local binary folder status failed=0
	while read -r binary folder; do
		status=$(sed -n "s/^$binary //p" "$WORK/results")
		if [ -z "$status" ]; then
			printf 'FAIL\t%s [no result: the machine ended before or during it]\n' "$folder"
			failed=1
		elif [ "$status" != 0 ]; then
			failed=1
		fi
	done <"$WORK/disk/plan"
	[ "$(tail -n 1 "$WORK/results")" = end ] || failed=1
	return $failed
}

# run_share SHARE runs that part of the tests in a machine, in a subshell of its own.
run_share() (
	booted=0 WORK='' OUTPUT=''
	trap cleanup EXIT
	WORK=$(mktemp -d "$TOP/build/vm.XXXXXX")
	pack "$1"
	boot "$ACCELERATOR" "$CPU" || booted=$?
	if [ $booted -ne 0 ]; then say "qemu ended with status $booted (124: over $TIME_LIMIT s)"; fi
	if ! judge; then
		say "console and qemu's own words follow"
		cat "$WORK/console" "$WORK/qemu" >&2
		exit 1
	fi
)

# run_both shows what the second machine says when the first has ended.
run_both() {
	local second status=0
	OUTPUT=$(mktemp build/vm-output.XXXXXX)
	run_share 2 >"$OUTPUT" 2>&1 &
	second=$!
	run_share 1 || status=1
	wait $second || status=1
	cat "$OUTPUT"
	return $status
}

main() {
	local tests
	[ -x bin/clove-init ] || die "bin/clove-init is absent: run 'make build' first"
	tests=$(chosen "$LANE" | wc -l)
	if [ "$tests" = 0 ]; then
		say "no test of the lane $LANE matches RUN=${RUN:-}"
		return
	fi
	IMAGE=$(integration/vm/image.sh)
	mkdir -p build
	WORK=$(mktemp -d "$TOP/build/vm.XXXXXX")
	if kvm_works; then ACCELERATOR=kvm CPU=host; fi
	say "booting with $ACCELERATOR"
	if [ "$tests" -le $FEW ]; then run_share 0; else run_both; fi
}

main
