#!/usr/bin/env bash
# Builds the virtual machine of the vm lane, a Debian of this host's own
# release with systemd, Debian's kernel and pure cgroup v2, and prints the
# folder that holds it: disk.ext4, vmlinuz, initrd.img.
#
# The folder is cached under the hash of all that made it. Built once, it is
# never written again: a run boots it with snapshot=on.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$TOP/integration/vm
CACHE=${XDG_CACHE_HOME:-/var/cache}/clove/vm
# The packages that boot, and those of an agent's host. dbus is absent: clove must not need it.
PACKAGES=linux-image-cloud-amd64,systemd,systemd-sysv,udev,kmod,initramfs-tools
PACKAGES+=,busybox-static,curl,e2fsprogs,iproute2,procps,python3-minimal,libpython3-stdlib,libseccomp2
# The engines that run containers over clove-oci (integration/engines).
PACKAGES+=,docker.io,containerd,podman,runc,conmon,containernetworking-plugins,iptables,tini
DISK_SIZE=3G

# The test binaries link this host's C library, so the machine runs the same release.
codename() {
	# shellcheck source=/dev/null
	(. /etc/os-release && echo "${VERSION_CODENAME:?/etc/os-release names no release}")
}

# customize runs in the new system's folder, before it becomes a disk.
customize() {
	local root=$1
	# Only the drivers of qemu's virtio devices: a small initrd unpacks fast under TCG.
	sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
	printf '%s\n' virtio_pci virtio_blk ext4 >>"$root/etc/initramfs-tools/modules"
	chroot "$root" update-initramfs -u
	cp "$HERE/clove-lane.service" "$root/etc/systemd/system/"
	# No login, no timers, no journal on disk: nothing but the lane runs here.
	chroot "$root" systemctl enable --quiet clove-lane.service
	chroot "$root" systemctl mask --quiet getty.target serial-getty@ttyS0.service \
		apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
		systemd-timesyncd.service e2scrub_reap.service \
		docker.service docker.socket containerd.service podman.service podman.socket \
		podman-restart.service podman-auto-update.service podman-auto-update.timer
	echo clove-vm >"$root/etc/hostname"
	echo '/dev/vda / ext4 defaults 0 0' >"$root/etc/fstab"
	rm -f "$root/etc/apt/apt.conf.d/99mmdebstrap"
}

build() {
	local to=$1 work=$2
	[ "$(uname -m)" = x86_64 ] || die "the virtual machine is built for x86_64 only"
	apt_sources >"$work/sources.list"
	apt_options >"$work/apt.conf"
	mmdebstrap --quiet --mode=root --variant=minbase --include="$PACKAGES" --aptopt="$work/apt.conf" \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook="$HERE/image.sh --customize \"\$1\"" \
		"$(codename)" "$work/root" "$work/sources.list" >&2
	cp "$work"/root/boot/vmlinuz-* "$work/vmlinuz"
	cp "$work"/root/boot/initrd.img-* "$work/initrd.img"
	mkfs.ext4 -q -F -L clove-root -E lazy_itable_init=0,lazy_journal_init=0 -d "$work/root" "$work/disk.ext4" "$DISK_SIZE" >/dev/null
	rm -rf "$work/root" "$work/sources.list" "$work/apt.conf"
	mv "$work" "$to"
}

main() {
	local hash folder work began=$SECONDS
	hash=$(codename | cat - "$HERE/image.sh" "$HERE/clove-lane.service" | sha256sum | cut -c1-16)
	folder=$CACHE/$hash
	mkdir -p "$CACHE"
	exec 9>"$CACHE/lock"
	flock 9 # two lanes on one host build one image
	if [ ! -d "$folder" ]; then
		say "building the image (once; kept in $folder)"
		rm -rf "$CACHE"/tmp.* # left by a build that was killed
		work=$(mktemp -d "$CACHE/tmp.XXXXXX")
		chmod 755 "$work"
		build "$folder" "$work"
		say "built in $((SECONDS - began)) s"
	fi
	touch "$folder"
	find "$CACHE" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} + # other recipes, long unused
	echo "$folder"
}

if [ "${1:-}" = --customize ]; then
	customize "$2"
else
	main
fi
