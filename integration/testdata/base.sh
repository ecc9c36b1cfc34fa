#!/usr/bin/env bash
# Makes, as a tar file, what stands in for Debian's slim image where no registry is
# reached: base.sh [FILE]. Made once, it is kept beside the vm lane's image. Its apt knows
# one archive, a folder in it, with what the Dockerfile installs.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

RELEASE=bookworm
INSTALLED=python3-minimal,libpython3-stdlib,e2fsprogs,mount
CACHE=${XDG_CACHE_HOME:-/var/cache}/clove/docker
WORK=''
cleanup() { [ -z "$WORK" ] || rm -rf "$WORK"; }
trap cleanup EXIT

# debian makes a system of Debian's required packages and apt, without what Debian's
# slim image leaves out.
debian() {
	apt_options >"$WORK/apt.conf"
	# The archives of this host, if it is of that release, else Debian's own.
	apt_sources | grep -w "$RELEASE" >"$WORK/sources.list" || echo "deb http://deb.debian.org/debian $RELEASE main" >"$WORK/sources.list"
	mmdebstrap --mode=root --variant=minbase --aptopt="$WORK/apt.conf" --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		"$RELEASE" "$WORK/root" "$WORK/sources.list" >"$WORK/log" 2>&1 || { cat "$WORK/log" >&2 && return 1; }
}

# archive makes the folder of packages: those that apt would bring, and their index.
archive() {
	local deb folder=$WORK/root/var/local/archive
	mkdir -p "$folder" "$WORK/root/etc/apt/sources.list.d"
	chroot "$WORK/root" sh -c "cd /var/local/archive && apt-get -qq update && apt-get -qq download \$(
		apt-get -qq install --no-install-recommends --print-uris ${INSTALLED//,/ } | sed -n \"s/.* \\([a-z0-9.+-]*\\)_.*\\.deb .*/\\1/p\")" >&2
	for deb in "$folder"/*.deb; do
		dpkg-deb -f "$deb"
		printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$deb")" "$(stat -c %s "$deb")" "$(sha256sum <"$deb" | cut -d' ' -f1)"
	done >"$folder/Packages"
	rm -f "$WORK/root/etc/apt/apt.conf.d/99mmdebstrap" # the options, which the packages needed too
	echo 'deb [trusted=yes] file:/var/local/archive ./' >"$WORK/root/etc/apt/sources.list"
}

main() {
	local kept
	kept=$CACHE/$(sha256sum <"$TOP/integration/testdata/base.sh" | cut -c1-16).tar
	mkdir -p "$CACHE"
	exec 9>"$CACHE/lock"
	flock 9
	if [ ! -f "$kept" ]; then
		rm -rf "${CACHE:?}"/tmp.*
		WORK=$(mktemp -d "$CACHE/tmp.XXXXXX")
		chmod 755 "$WORK"
		debian >&2
		archive
		tar -C "$WORK/root" -cf "$WORK/base.tar" --exclude='./var/lib/apt/lists/*' --exclude='./var/cache/apt/*.bin' .
		mv "$WORK/base.tar" "$kept"
	fi
	[ $# -eq 0 ] || cp "$kept" "$1"
}

main "$@"
