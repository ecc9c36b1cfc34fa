package store

import (
	"encoding/binary"
	"os"
)

// Where bbolt notes the number of the last transaction in each of its two meta
// pages, and the size of a page (internal/common/meta.go in its source: a page
// header of 16 bytes, then the meta).
const (
	metaPageSize = 24
	metaTxid     = 64
)

// Revision returns a number that changes with every transaction that wrote to the
// file at path. It waits for no lock and opens no database. A caller who gets the same
// revision as before has nothing to read. A transaction that is being written may show
// already or not yet.
func Revision(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, explain(path, err)
	}
	defer file.Close()
	var page [metaTxid + 8]byte
	if _, err := file.ReadAt(page[:], 0); err != nil {
		return 0, explain(path, err)
	}
	// bbolt writes the two meta pages in turns, so the higher number is the last
	// transaction's.
	first := binary.LittleEndian.Uint64(page[metaTxid:])
	size := int64(binary.LittleEndian.Uint32(page[metaPageSize:]))
	if _, err := file.ReadAt(page[:], size); err != nil {
		return 0, explain(path, err)
	}
	return max(first, binary.LittleEndian.Uint64(page[metaTxid:])), nil
}
