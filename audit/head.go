package audit

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"clove.run/clove/internal/atomicfile"
)

// head is where the log ends: its last acknowledged record.
type head struct {
	sequence uint64 // of writes to the file; the newer slot has the greater one
	count    uint64 // records
	hash     tlog.Hash
	closed   bool   // nothing is lost behind this
	boot     string // the host's boot in which this was written
}

// headFile has two slots, each in a disk's sector of its own, which are written by turns: a
// write that is cut short leaves the other one. The number of unwritten entries is in a
// third sector.
type headFile struct {
	file *os.File
	now  head
}

const (
	headMagic   = "clove-audit-head"
	headSector  = 512
	unwrittenAt = 2 * headSector
	headBytes   = 3 * headSector
)

func (h head) text() []byte {
	state := "open"
	if h.closed {
		state = "closed"
	}
	text := fmt.Sprintf("%s %d %d %d %s %s %s", headMagic, Version, h.sequence, h.count, h.hash, state, h.boot)
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// parseHead reads a slot; ok is false if it was not written whole.
func parseHead(slot []byte) (h head, ok bool) {
	line, _, whole := bytes.Cut(slot, []byte("\n"))
	words := bytes.Fields(line)
	if !whole || len(words) != 8 || string(words[0]) != headMagic || string(words[1]) != strconv.Itoa(Version) {
		return h, false
	}
	sum := words[7]
	if text := line[:len(line)-len(sum)-1]; fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) != string(sum) {
		return h, false
	}
	var errs [3]error
	h.sequence, errs[0] = strconv.ParseUint(string(words[2]), 10, 64)
	h.count, errs[1] = strconv.ParseUint(string(words[3]), 10, 64)
	h.hash, errs[2] = tlog.ParseHash(string(words[4]))
	h.closed, h.boot = string(words[5]) == "closed", string(words[6])
	return h, errors.Join(errs[:]...) == nil
}

// readHead returns the newer sound slot, and how many entries were in memory only.
func readHead(path string) (h head, unwritten uint64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return h, 0, err
	}
	found := false
	for at := 0; at < unwrittenAt && at+headSector <= len(text); at += headSector {
		if slot, ok := parseHead(text[at : at+headSector]); ok && (!found || slot.sequence > h.sequence) {
			h, found = slot, true
		}
	}
	if !found || len(text) < headBytes {
		return h, 0, fmt.Errorf("%s is damaged", path)
	}
	unwritten, err = strconv.ParseUint(string(bytes.Trim(text[unwrittenAt:headBytes], "\x00\n ")), 10, 64)
	return h, unwritten, err
}

// makeHead makes the file of an empty log: it exists before the first record does.
func makeHead(path string) error {
	text := make([]byte, headBytes)
	copy(text, head{sequence: 2, closed: true, boot: "none"}.text())
	copy(text[unwrittenAt:], unwrittenText(0))
	return atomicfile.Write(path, 0o600, text)
}

// put writes the next slot. It is durable only after sync.
func (f *headFile) put(h head) error {
	h.sequence = f.now.sequence + 1
	slot := make([]byte, headSector)
	copy(slot, h.text())
	if _, err := f.file.WriteAt(slot, int64(h.sequence%2)*headSector); err != nil {
		return err
	}
	f.now = h
	return nil
}

func (f *headFile) putUnwritten(count uint64) error {
	_, err := f.file.WriteAt(unwrittenText(count), unwrittenAt)
	return err
}

func unwrittenText(count uint64) []byte { return fmt.Appendf(nil, "%020d\n", count) }

func (f *headFile) sync() error { return f.file.Sync() }
