#!/usr/bin/env bash
# Makes, as a tar file, what stands in for Debian's slim image where no registry is
# reached: base.sh FILE. It is kept beside the vm lane's image. Its apt knows one archive,
# a folder in it, with what the Dockerfile installs.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

INSTALLED=python3-minimal,libpython3-stdlib,e2fsprogs,mount
CACHE=${XDG_CACHE_HOME:-/var/cache}/clove/docker
WORK=''
cleanup() { [ -z "$WORK" ] || rm -rf "$WORK"; }
trap cleanup EXIT

# debian makes a system of Debian's required packages and apt, without what Debian's
# slim image leaves out.
debian() {
	mmdebstrap --quiet --mode=root --variant=minbase --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$WORK/root"
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
	cp "$kept" "$1"
}

main "$@"
