#!/usr/bin/env bash
# Builds clove's Debian package: build.sh VERSION FOLDER. Its content is staged in a
# folder of its own, so two versions can be built at the same time.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

VERSION=$1 FOLDER=$2
MAINTAINER=${DEBFULLNAME:-clove maintainers} MAINTAINER="$MAINTAINER <${DEBEMAIL:-maintainers@clove.run}>"
# The same tree gives the same package at any time.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
STAGE='' PART=''
cleanup() { rm -rf ${STAGE:+"$STAGE"} ${PART:+"$PART"}; }
trap cleanup EXIT

binaries() {
	make --no-print-directory -s programs BIN="$STAGE/bin" VERSION="$VERSION"
}

documents() {
	local clove=$STAGE/bin/clove shell
	mkdir -p "$STAGE/completions" "$STAGE/man"
	for shell in bash zsh fish; do
		"$clove" completion $shell >"$STAGE/completions/clove.$shell"
	done
	"$clove" manual | compress "$STAGE/man/clove.1.gz"
	compress "$STAGE/man/cloved.8.gz" <integration/package/cloved.8
	compress "$STAGE/man/clove-oci.8.gz" <integration/package/clove-oci.8
		# A manual page is troff, where a backslash, or a dot at the beginning of a line, is special.
	sed -e 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/' docs/clove.yaml |
		cat integration/package/clove.yaml.5.head - integration/package/clove.yaml.5.tail | compress "$STAGE/man/clove.yaml.5.gz"
	third_party "$STAGE" | compress "$STAGE/third-party.gz"
	compress "$STAGE/changelog.gz" <CHANGELOG.md
	printf 'clove (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' \
		"$VERSION" "$MAINTAINER" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | compress "$STAGE/changelog.Debian.gz"
}

main() {
	local deb
	deb=$FOLDER/clove_${VERSION}_amd64.deb
	mkdir -p build "$FOLDER"
	rm -f "$deb" # an older package must not pass for this one
	STAGE=$(mktemp -d "$TOP/build/package.XXXXXX")
	chmod 755 "$STAGE"
	binaries
	documents
	export VERSION MAINTAINER STAGE SOURCE_DATE_EPOCH
	# Beside the final name, so that the move is one rename: a build that is interrupted
	# leaves nothing under that name.
	PART=$deb.part
	build/tools/nfpm package --config integration/package/nfpm.yaml --packager deb --target "$PART" >&2
	mv "$PART" "$deb"
	echo "$deb"
}

main
