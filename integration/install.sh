#!/usr/bin/env bash
# Installs what clove's targets need and this machine lacks, from the
# machine's own apt sources: install.sh GROUP...
# If nothing is missing, it downloads nothing and updates no list.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/lib.sh"

packages() {
	case $1 in
	build) echo gcc libc6-dev pkg-config libseccomp-dev ;;
	run) echo e2fsprogs python3-minimal ;;
	browser) echo chromium ;; # of bench/report and the learning tests; 124 MB
	unit) echo python3-minimal libpython3-stdlib python3-pip nodejs ;; # of sdk
	lint) echo shellcheck ;;
	deb) echo dpkg lintian systemd ;;
		# The second line has the real clients of the network tests, the last what makes a base image.
	test) echo busybox-static e2fsprogs iproute2 procps python3-minimal libpython3-stdlib util-linux mount \
		curl wget git gh openssl openssh-client python3-pip nodejs postgresql-client iptables \
		mmdebstrap debian-archive-keyring vim-tiny ;;
		# The engines that integration/engines runs over clove-oci.
	engines) echo docker.io containerd podman runc conmon containernetworking-plugins iptables iproute2 busybox-static tini ;;
		# The second line has the peers of an agent's calls, the third that of its models, the last
		# the engine in its world (see integration/engines).
	bench) echo bubblewrap e2fsprogs iproute2 squid tinyproxy-bin \
		redis-server python3-minimal libpython3-stdlib \
		nginx nginx-common \
		docker.io containerd runc iptables busybox-static tini ;;
	vm) echo mmdebstrap debian-archive-keyring qemu-system-x86 seabios e2fsprogs udev ;;
	*) die "unknown group $1" ;;
	esac
}

# absent prints the given packages that are not installed.
absent() {
	local package
	for package; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Packages of Debian start their daemons unless this program forbids it.
POLICY=/usr/sbin/policy-rc.d

# apt_install_idle installs packages without starting their daemons: the tests run their own.
apt_install_idle() {
	local status=0 made=''
	if [ ! -e "$POLICY" ]; then
		made=$POLICY
		printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$POLICY"
	fi
	apt_install "$@" || status=$?
	[ -z "$made" ] || as_root rm -f "$made"
	return $status
}

# keep_idle disables the installed engines and servers, so that they do not start at the next boot.
keep_idle() {
	local package unit
	command -v systemctl >/dev/null || return 0
	for package; do
		case $package in docker.io | containerd | podman | nginx-common) ;; *) continue ;; esac
		for unit in $(dpkg -L "$package" | sed -nE 's,^/(usr/)?lib/systemd/system/([^/@]*\.(service|socket|timer))$,\2,p'); do
			as_root systemctl disable --quiet "$unit" 2>/dev/null || say "cannot disable $unit"
		done
	done
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >&2
}

# Builds and downloads are kept here for other clones of the tree on this machine.
CACHE=${XDG_CACHE_HOME:-/var/cache}/clove/tools
[ -w /var/cache ] || [ -n "${XDG_CACHE_HOME:-}" ] || CACHE=$TOP/build/tools/kept

# kept NAME COMMAND... prints the folder of that name in the cache. If there is none yet, the command
# fills it: its last argument is the folder.
kept() {
	local folder=$CACHE/$1 work
	shift
	if [ ! -d "$folder" ]; then
		say "installing $(basename "$folder")"
		mkdir -p "$CACHE"
		work=$(mktemp -d "$CACHE/tmp.XXXXXX")
		chmod 755 "$work"
		"$@" "$work" >&2 || { rm -rf "$work" && die "cannot install $(basename "$folder")"; }
		mv -T "$work" "$folder" 2>/dev/null || rm -rf "$work" # another clone may have been faster
	fi
	echo "$folder"
}

# The program that makes packages is a Go program, but not part of clove's module.
install_nfpm() {
	local version=v2.43.0 folder
	folder=$(kept "nfpm-$version" go_install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$version")
	mkdir -p build/tools
	ln -sf "$folder/nfpm" build/tools/nfpm
}

# go_install PACKAGE [FLAG...] FOLDER builds a program of another module into the folder.
go_install() {
	local folder=${*: -1}
	GOBIN=$folder go install "${@:2:$#-2}" "$1"
}

# The runtimes that clove-oci is compared with: runc in the version of the library that
# clove is built with, and two versions with the vulnerabilities that the tests of
# escapes use. Static, so that the virtual machine can run them.
install_runc() {
	local version name folder
	mkdir -p bin
	for version in "$(go list -m -f '{{.Version}}' github.com/opencontainers/runc)" v1.1.4 v1.0.0-rc93; do
		case $version in
		v1.1.4 | v1.0.0-rc93) name=runc-${version#v} ;;
		*) name=runc ;;
		esac
		folder=$(CGO_ENABLED=1 kept "runc-$version" go_install "github.com/opencontainers/runc@$version" \
			-tags "${TAGS%,runc_nocriu}" -ldflags '-s -linkmode external -extldflags -static')
		cp -u "$folder/runc" "bin/$name"
	done
}

# install_clients GROUP installs the clients of models and of MCP that the tests run, the compiler of TypeScript, and the gateway of
# the benchmark, as the lock below integration/clients names them, into build/clients. The programs bring their own Node.js,
# which Debian's would be too old for; npm is what the machine has.
install_clients() {
	local from=integration/clients/$1 folder
	command -v npm >/dev/null || apt_install npm || die "cannot install npm, for $from"
	folder=$(kept "clients-$1-$(sha256sum <"$from/package-lock.json" | cut -c1-16)" npm_install "$from")
	mkdir -p build/clients
	ln -sfn "$folder" "build/clients/$1"
}

npm_install() {
	local from=$1 to=$2
	cp "$from/package.json" "$from/package-lock.json" "$to"
	(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error)
}

# The image that tests of clove's own image begin with, once on each machine. These tests run in network
# namespaces of their own, where no archive is reached.
install_base() {
	[ "$(id -u)" = 0 ] || return 0
	integration/testdata/base.sh || say "there is no base image: the tests of clove's own image will fail"
}

# install_packages GROUP... installs those of the groups' packages that the machine lacks.
install_packages() {
	local group wanted=() missing more
	for group; do
		read -ra more <<<"$(packages "$group")"
		wanted+=("${more[@]}")
	done
	[ ${#wanted[@]} -gt 0 ] || return 0
	if ! command -v apt-get >/dev/null; then
		say "this is no Debian: see to it yourself that there is what these packages hold: ${wanted[*]}"
		return
	fi
	read -ra missing <<<"$(absent "${wanted[@]}")"
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${missing[*]}"
	# On a new machine the lists are missing or old: update them once and try again.
	apt_install_idle "${missing[@]}" 2>/dev/null ||
		{ as_root apt-get update -q >&2 && apt_install_idle "${missing[@]}"; } ||
		die "cannot install ${missing[*]}"
	keep_idle "${missing[@]}"
}

main() {
	local group of_packages=() built=()
	command -v go >/dev/null || die "Go is not installed (go.mod names the version)"
	for group; do
		case $group in
		runc | libraries | mcp | agents | gateway | types) built+=("$group") ;;
		deb | test)
			of_packages+=("$group")
			built+=("$group")
			;;
		*) of_packages+=("$group") ;;
		esac
	done
	install_packages "${of_packages[@]}" # first: runc is compiled with one of them
	for group in "${built[@]}"; do
		case $group in
		deb) install_nfpm ;;
		test) install_base ;;
		runc) install_runc ;;
		*) install_clients "$group" ;;
		esac
	done
}

main "$@"
