package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// tree is the Merkle tree of the first size records, as far as adding records and computing
// its root need it: the last complete subtree of each height. Its memory is O(log size).
type tree struct {
	size uint64
	last []tlog.Hash // by height
}

// add appends a record and returns the hashes that it adds to tlog's stored hashes.
func (t *tree) add(hash tlog.Hash) ([]tlog.Hash, error) {
	added, err := tlog.StoredHashesForRecordHash(int64(t.size), hash, t)
	if err != nil {
		return nil, err
	}
	t.last = slices.Concat(added, t.last[min(len(t.last), len(added)):])
	t.size++
	return added, nil
}

// root is tlog's hash of the whole tree.
func (t *tree) root() (tlog.Hash, error) { return tlog.TreeHash(int64(t.size), t) }

// ReadHashes implements tlog.HashReader for the two uses above: both read only the last
// complete subtree of a height.
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, 0, len(indexes))
	for _, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		if level >= len(t.last) || uint64(n) != t.size>>level-1 {
			return nil, fmt.Errorf("the tree's hash %d is not its last of height %d", index, level)
		}
		hashes = append(hashes, t.last[level])
	}
	return hashes, nil
}

// storedHashes is the file of all hashes of the tree.
type storedHashes struct{ file *os.File }

// openHashes opens the file for reading; nil if it does not exist.
func openHashes(path string) (*storedHashes, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &storedHashes{file}, err
}

func (s *storedHashes) close() {
	if s != nil {
		s.file.Close()
	}
}

// ReadHashes implements tlog.HashReader.
func (s *storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if _, err := s.file.ReadAt(hashes[i][:], index*tlog.HashSize); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// leaf is the stored hash of a record; ok is false if the file has none.
func (s *storedHashes) leaf(number uint64) (hash tlog.Hash, ok bool) {
	if s == nil || number == 0 {
		return hash, false
	}
	found, err := s.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(number-1))})
	if err != nil {
		return hash, false
	}
	return found[0], true
}

// treeAt is the tree of the first size records.
func (s *storedHashes) treeAt(size uint64) (tree, error) {
	t := tree{size: size}
	for level := 0; size>>level > 0; level++ {
		found, err := s.ReadHashes([]int64{tlog.StoredHashIndex(level, int64(size>>level-1))})
		if err != nil {
			return tree{}, err
		}
		t.last = append(t.last, found[0])
	}
	return t, nil
}

// write puts hashes behind the first count.
func (s *storedHashes) write(count int64, hashes []tlog.Hash) error {
	text := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, hash := range hashes {
		text = append(text, hash[:]...)
	}
	_, err := s.file.WriteAt(text, count*tlog.HashSize)
	return err
}

// count is how many whole hashes the file has.
func (s *storedHashes) count() (int64, error) {
	size, err := s.file.Seek(0, io.SeekEnd)
	return size / tlog.HashSize, err
}
