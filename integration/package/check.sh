#!/usr/bin/env bash
# Checks a package: its units with systemd, and all of it with lintian: check.sh DEB.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

DEB=$1
ROOT=$(mktemp -d)
trap 'rm -rf "$ROOT"' EXIT

# The units name programs that this host may lack, so systemd reads them in a root
# that has these programs and the units.
units() {
	dpkg-deb -x "$DEB" "$ROOT"
	cp -an /lib/systemd/system/. "$ROOT/lib/systemd/system/"
	mkdir -p "$ROOT/bin"
	cp /bin/true "$ROOT/bin/kill"
	MANPATH=$ROOT/usr/share/man systemd-analyze verify --root="$ROOT" clove.service clove.socket clove.slice clove-agents.service
}

say "systemd-analyze verify"
units
systemd-analyze security --root="$ROOT" --offline=true clove.service | tail -n 1 >&2
say "lintian"
lintian --fail-on error "$DEB"
