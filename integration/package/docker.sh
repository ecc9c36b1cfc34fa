#!/usr/bin/env bash
# Builds the Docker images of the runtime: docker.sh TAG [TARGET [VERSION]].
# TARGET is a stage of deploy/docker/Dockerfile, by default its last. Only clove's
# own programs, built here and stripped, go to the engine.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

TAG=$1 TARGET=${2:-} VERSION=${3:-0.0.0~dev}
STAGE=''
cleanup() { [ -z "$STAGE" ] || rm -rf "$STAGE"; }
trap cleanup EXIT

mkdir -p build
STAGE=$(mktemp -d "$TOP/build/docker.XXXXXX")
make --no-print-directory -s programs BIN="$STAGE/bin" VERSION="$VERSION"
cp deploy/docker/Dockerfile deploy/docker/entrypoint "$STAGE/"
docker build -t "$TAG" ${TARGET:+--target "$TARGET"} "$STAGE" >&2
