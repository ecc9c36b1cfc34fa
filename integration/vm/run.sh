#!/usr/bin/env bash
# The vm lane: boots the machine of image.sh, runs in it every test that stands
# in a *_root_test.go or *_vm_test.go file, and ends with those tests' own result.
# A package without a result has failed, whatever the reason.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

MEMORY=3G
TIME_LIMIT=3900   # seconds for boot and all tests, beside other load
KVM_TIME_LIMIT=20 # seconds that a kernel under KVM has to say its first word

WORK='' QEMU=''
cleanup() {
	[ -z "$QEMU" ] || kill "$QEMU" 2>/dev/null || true
	[ -z "$WORK" ] || rm -rf "$WORK"
}
trap cleanup EXIT

# pack fills $WORK/disk with what guest.sh's comment lists and makes it a disk.
pack() {
	local package folder binary version disk=$WORK/disk
	mkdir -p "$disk/tests" "$disk/bin" "$disk/tree"
	cp integration/vm/guest.sh "$disk/"
	cp bin/* "$disk/bin/"
	root_tests vm >"$disk/pattern"
	for version in 1.0.0 1.0.1; do
		integration/package/build.sh "$version" "$disk/deb" >/dev/null
	done
	git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -T - -c -f - | tar -x -C "$disk/tree"
	for package in $(root_packages vm); do
		folder=$(go list -f '{{.Dir}}' "$package")
		folder=${folder#"$TOP"/}
		binary=${folder//\//-}.test
		go test -c -tags "$TAGS,root,vm" -ldflags '-s -w' -o "$disk/tests/$binary" "$package"
		echo "$binary $package $folder" >>"$disk/plan"
	done
	[ -s "$disk/plan" ] || die "no package has a *_root_test.go file"
	# Half as much again: the file system's own needs, and what tests write.
	mkfs.ext4 -q -F -L clove-work -d "$disk" "$WORK/work.ext4" $(($(du -sm "$disk" | cut -f1) * 3 / 2 + 256))M >/dev/null
}

# machine runs qemu: machine LIMIT ACCELERATOR CPU, console to $WORK/console.
machine() {
	local limit=$1 accelerator=$2 cpu=$3
	shift 3
	timeout --kill-after=10 "$limit" qemu-system-x86_64 -accel "$accelerator" -cpu "$cpu" -smp 2 -m "$MEMORY" \
		-nodefaults -no-user-config -display none \
		-kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd.img" -serial "file:$WORK/console" "$@"
}

# kvm_works tells whether this host's KVM boots the kernel as far as its first
# words: a /dev/kvm alone promises nothing, least of all inside a machine.
# The kernel is told to stop there: it finds no root and restarts.
kvm_works() {
	[ -w /dev/kvm ] || return 1
	machine "$KVM_TIME_LIMIT" kvm host -no-reboot -append 'console=ttyS0 panic=-1 init=/none root=/none rdinit=/none' \
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
		-append 'console=ttyS0 root=/dev/vda rw quiet panic=-1 systemd.show_status=0' \
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
	local binary package folder status failed=0
	while read -r binary package folder; do
		status=$(sed -n "s/^$binary //p" "$WORK/results")
		if [ -z "$status" ]; then
			printf 'FAIL\t%s [no result: the machine ended before or during it]\n' "$package"
			failed=1
		elif [ "$status" != 0 ]; then
			failed=1
		fi
	done <"$WORK/disk/plan"
	[ "$(tail -n 1 "$WORK/results")" = end ] || failed=1
	return $failed
}

main() {
	local accelerator=tcg,thread=multi cpu=max booted=0
	[ -x bin/clove-init ] || die "bin/clove-init is absent: run 'make build' first"
	IMAGE=$(integration/vm/image.sh)
	mkdir -p build
	WORK=$(mktemp -d "$TOP/build/vm.XXXXXX")
	pack
	if kvm_works; then accelerator=kvm cpu=host; fi
	say "booting with $accelerator"
	boot "$accelerator" "$cpu" || booted=$?
	if [ $booted -ne 0 ]; then say "qemu ended with status $booted (124: over $TIME_LIMIT s)"; fi
	if ! judge; then
		say "console and qemu's own words follow"
		cat "$WORK/console" "$WORK/qemu" >&2
		exit 1
	fi
}

main
