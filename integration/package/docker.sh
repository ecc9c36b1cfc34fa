#!/usr/bin/env bash
# The Docker images:
#
#   docker.sh build TAG [TARGET [VERSION]]  a stage of deploy/docker/Dockerfile, by default its last
#   docker.sh node TAG [VERSION]            deploy/kubernetes/Dockerfile, for the DaemonSets
#   docker.sh stage FOLDER [VERSION]        only the files that the engine would get: those of
#                                           deploy/docker, clove's programs, built here and stripped,
#                                           and the licences of what they are linked with
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

STAGE=''
cleanup() { [ -z "$STAGE" ] || rm -rf "$STAGE"; }
trap cleanup EXIT

stage() {
	local folder=$1 version=${2:-0.0.0~dev}
	make --no-print-directory -s programs BIN="$folder/bin" VERSION="$version"
	third_party "$folder" | compress "$folder/third-party.gz"
	cp deploy/docker/* "$folder/"
}

# image VERSION FLAGS... stages into a new folder and has docker build from that.
image() {
	local version=$1
	shift
	mkdir -p build
	STAGE=$(mktemp -d "$TOP/build/docker.XXXXXX")
	stage "$STAGE" "$version"
	docker build "$@" "$STAGE"
}

build() {
	local tag=$1 target=${2:-} version=${3:-}
	image "$version" -t "$tag" ${target:+--target "$target"}
}

node() { image "${2:-}" -t "$1" -f deploy/kubernetes/Dockerfile; }

case ${1:-} in
build | node | stage) "$@" ;;
*) die "usage: docker.sh build TAG [TARGET [VERSION]], docker.sh node TAG [VERSION], docker.sh stage FOLDER [VERSION]" ;;
esac
