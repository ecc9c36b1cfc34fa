#!/usr/bin/env bash
# The lanes v2 and vm, run.sh v2|vm: boots the machine of image.sh, runs in it the tests
# that the lane chooses from the *_root_test.go and *_vm_test.go files, and takes their
# result as its own. A package without a result has failed, whatever the reason.
#
# The lane vm is divided between two such machines: each runs its tests one after the other, and its
# emulated processor uses only one of the host's. The few tests of v2 are not worth a second boot.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

LANE=$1
MEMORY=3G
case $LANE in # seconds for boot and all tests, beside other load
v2) TIME_LIMIT=1500 ;;
vm) TIME_LIMIT=10800 ;;
esac
# The machine takes longest, and all other parts wait for it.
PRIORITY=0
if nice -n -5 true 2>/dev/null; then PRIORITY=-5; fi
ACCELERATOR=tcg,thread=multi
# Without these features the emulated machine needs about an eighth less time. No test
# uses them.
CPU=max,-la57,-erms,-fsrm,-smap,-smep,-pku,-umip
KVM_TIME_LIMIT=20 # seconds until a kernel under KVM must have printed something
FEW=75            # so few tests do not justify a second boot

WORK='' QEMU='' OUTPUT=''
cleanup() {
	[ -z "$QEMU" ] || kill "$QEMU" 2>/dev/null || true
	[ -z "$WORK" ] || rm -rf "$WORK"
	[ -z "$OUTPUT" ] || rm -f "$OUTPUT"
}
trap cleanup EXIT

# share N prints the chosen tests of machine N, 0 for all of them. The tests of systemd stay
# together, because they install the package first: machine 1 has these and fewer others.
share() {
	chosen "$LANE" | awk -v wanted="$1" '
		{share = $1 == "integration/systemd" || others++ % 5 < 2 ? 1 : 2}
		!wanted || share == wanted'
}

# pack SHARE fills $WORK/disk with what guest.sh's comment lists, and makes a disk image of it.
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
	if [ -e "$disk/tests/$(binary_of integration/systemd)" ]; then debs "$disk/deb"; fi
		# Half as much again, for the file system itself and for what tests write.
	mkfs.ext4 -q -F -L clove-work -d "$disk" "$WORK/work.ext4" $(($(du -sm "$disk" | cut -f1) * 3 / 2 + 256))M >/dev/null
}

# debs adds clove's package in the versions that integration/systemd installs: the
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

# machine executes qemu, in a subshell: machine LIMIT ACCELERATOR CPU, console to $WORK/console.
# A signal that ends this script, or its process group, ends qemu.
machine() {
	local limit=$1 accelerator=$2 cpu=$3
	shift 3
	exec nice -n "$PRIORITY" timeout --foreground --kill-after=10 "$limit" qemu-system-x86_64 -accel "$accelerator" -cpu "$cpu" -smp 2 -m "$MEMORY" \
		-nodefaults -no-user-config -display none \
		-kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd.img" -serial "file:$WORK/console" "$@"
}

# kvm_works reports whether this host's KVM boots the kernel as far as its first
# output: a /dev/kvm alone promises nothing, especially inside a virtual machine.
# The kernel stops there: it finds no root and restarts. The result for a host where
# it fails is kept, because the check takes the whole time limit.
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

# boot starts the machine and waits until it powers off. It may reboot: its disk is
# a copy on write that exists as long as qemu. If it never powers off, the time limit
# ends it.
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

# run_both prints the second machine's output when the first has ended.
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
