package linked

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
)

// cachePath is where the loader of the GNU C library keeps the places of libraries.
const cachePath = "/etc/ld.so.cache"

// cacheMost bounds the cache in bytes; a large desktop's has 300 KB.
const cacheMost = 4 << 20

// The form of the file: dl-cache.h of the GNU C library. An older form may stand before it.
const (
	cacheMagic    = "glibc-ld.so.cache1.1"
	oldMagic      = "ld.so-1.7.0"
	oldHeader     = 16
	oldEntry      = 12
	cacheHeader   = 48
	cacheEntry    = 24
	cacheCountAt  = 20
	architectures = 0xff00 // bits of an entry's flags
)

// architecture is this machine's in an entry's flags: FLAG_X8664_LIB64, FLAG_AARCH64_LIB64.
var architecture = map[string]uint32{"amd64": 0x0300, "arm64": 0x0a00}

// parseCache returns the paths of each name, in the cache's order. A damaged entry adds none.
func parseCache(text []byte) map[string][]string {
	paths := map[string][]string{}
	text = behindOldCache(text)
	if len(text) < cacheHeader || !bytes.HasPrefix(text, []byte(cacheMagic)) {
		return paths
	}
	count := int(binary.LittleEndian.Uint32(text[cacheCountAt:]))
	entries := text[cacheHeader:]
	for i := range min(count, len(entries)/cacheEntry) {
		e := entries[i*cacheEntry:]
		if binary.LittleEndian.Uint32(e)&architectures != architecture[runtime.GOARCH] {
			continue
		}
		name, at := textAt(text, binary.LittleEndian.Uint32(e[4:])), textAt(text, binary.LittleEndian.Uint32(e[8:]))
		if name != "" && at != "" && !slices.Contains(paths[name], at) {
			paths[name] = append(paths[name], at)
		}
	}
	return paths
}

// behindOldCache skips the older form, which ends at a multiple of 8.
func behindOldCache(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(oldMagic)) || len(text) < oldHeader {
		return text
	}
	skip := uint64(oldHeader) + uint64(binary.LittleEndian.Uint32(text[12:]))*oldEntry
	skip = (skip + 7) &^ 7
	return text[min(skip, uint64(len(text))):]
}

func textAt(text []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(text)) {
		return ""
	}
	found, _, ended := bytes.Cut(text[offset:min(uint64(len(text)), uint64(offset)+textMost)], []byte{0})
	if !ended {
		return ""
	}
	return string(found)
}
