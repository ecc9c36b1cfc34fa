#!/usr/bin/env bash
# Installs what clove's targets need and this machine lacks, from the
# machine's own apt sources: install.sh GROUP...
# Nothing is downloaded, and no list updated, when all of it is there.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

packages() {
	case $1 in
	build) echo gcc libc6-dev pkg-config libseccomp-dev ;;
	run) echo e2fsprogs python3-minimal ;;
	lint) echo shellcheck ;;
	deb) echo dpkg lintian systemd ;;
	# The last line are the real clients of the network's tests.
	test) echo busybox-static e2fsprogs iproute2 procps python3-minimal libpython3-stdlib util-linux mount \
		curl wget git openssl openssh-client python3-pip nodejs postgresql-client ;;
	bench) echo bubblewrap e2fsprogs iproute2 squid tinyproxy-bin ;;
	vm) echo mmdebstrap debian-archive-keyring qemu-system-x86 seabios e2fsprogs udev ;;
	*) die "unknown group $1" ;;
	esac
}

# absent prints those of the packages given that are not installed.
absent() {
	local package
	for package; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >&2
}

# The maker of packages, a Go program like clove; it is no part of clove's module.
NFPM=v2.43.0
install_nfpm() {
	[ "$(go version -m build/tools/nfpm 2>/dev/null | awk '$1 == "mod" {print $3}')" != "$NFPM" ] || return 0
	say "installing nfpm $NFPM"
	GOBIN=$TOP/build/tools GOFLAGS='' go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$NFPM" >&2
}

main() {
	local group wanted=() missing
	command -v go >/dev/null || die "Go is not installed (go.mod names the version)"
	for group; do
		[ "$group" != deb ] || install_nfpm
		read -ra more <<<"$(packages "$group")"
		wanted+=("${more[@]}")
	done
	if ! command -v apt-get >/dev/null; then
		say "this is no Debian: see to it yourself that there is what these packages hold: ${wanted[*]}"
		return
	fi
	read -ra missing <<<"$(absent "${wanted[@]}")"
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${missing[*]}"
	# The lists of a fresh machine are absent or old: one update, one more try.
	apt_install "${missing[@]}" 2>/dev/null ||
		{ as_root apt-get update -q >&2 && apt_install "${missing[@]}"; } ||
		die "cannot install ${missing[*]}"
}

main "$@"
