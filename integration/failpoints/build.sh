#!/usr/bin/env bash
# Builds clove and cloved with failpoints into build/failpoints/bin, from a copy
# of the tree in which gofail has turned its comments into code. The tree itself
# is only read.
set -euo pipefail
# shellcheck source=integration/lib.sh
. "$(dirname "$0")/../lib.sh"

GOFAIL=go.etcd.io/gofail@v0.2.0
COPY=build/failpoints/tree OUT=$TOP/build/failpoints/bin

GOBIN=$TOP/build/tools go install "$GOFAIL"
rm -rf "$COPY" "$OUT"
mkdir -p "$COPY" "$OUT/real"
git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -T - -c -f - | tar -x -C "$COPY"
for folder in "$OUT" "$OUT/real"; do cp bin/clove-init bin/clove-gate bin/clove-loop bin/clove-mcp bin/clove-models bin/clove-swap bin/clove-upstream "$folder/"; done
cp integration/failpoints/clove.sh "$OUT/clove"

cd "$COPY"
mapfile -t folders < <(grep -rl --include='*.go' '// gofail: var' . | xargs -n1 dirname | sort -u)
[ ${#folders[@]} -gt 0 ] || die "there is no failpoint"
for folder in "${folders[@]}"; do
	"$TOP/build/tools/gofail" enable "$folder"
	sed "s/PACKAGE/$(basename "$folder")/" integration/failpoints/failpoint.go.in >"$folder/failpoint.go"
done
grep -rhoE --include='*.go' '__fp_[A-Za-z]+ ' . | sed 's/__fp_//; s/ //' | sort -u >"$OUT/names"
go get "$GOFAIL"
go build -tags "$TAGS" -o "$OUT/real/clove" ./cmd/clove
go build -tags "$TAGS" -o "$OUT/cloved" ./cmd/cloved
tar -C "$OUT" -cf "$TOP/bin/failpoints.tar" . # one file: the vm lane carries files
