package audit

import (
	"errors"
	"os"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// allocate allocates the segment in use again. On a full disk it keeps what room there is
// for ends of runs.
func (w *writer) allocate() error {
	w.soft = w.options.SegmentBytes - w.options.ReserveBytes
	full := errors.Join(reserve(w.file, 0, w.options.SegmentBytes), w.reserveHashes(w.options.SegmentBytes))
	if full == nil {
		return nil
	}
	w.soft = 0
	for room := w.options.ReserveBytes; room >= lineMax; room /= 2 {
		if errors.Join(reserve(w.file, w.size, room), w.reserveHashes(room)) == nil {
			break
		}
	}
	return full
}

// reserveHashes allocates what the hashes of so many bytes of records can take: two for each
// record, of which none is shorter than 128 bytes.
func (w *writer) reserveHashes(bytes int64) error {
	return reserve(w.hashes.file, tlog.StoredHashCount(int64(w.tip.tree.size))*tlog.HashSize, bytes/2)
}

// reserve allocates bytes of file from an offset, and keeps the file's size. File systems
// that cannot do it (copy on write) give no reserve.
func reserve(file *os.File, offset, bytes int64) error {
	err := descriptor.Use(file, func(fd int) error {
		if err := fits(fd, offset+bytes); err != nil {
			return err
		}
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, offset, bytes)
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// fits refuses what the file system has no room for: where fallocate(2) fails for that, ext4
// keeps what it allocated before, which is then the last of the disk.
func fits(fd int, bytes int64) error {
	var file unix.Stat_t
	var disk unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &file), unix.Fstatfs(fd, &disk)); err != nil {
		return err
	}
	if disk.Blocks > 0 && uint64(max(0, bytes-file.Blocks*512)) > disk.Bfree*uint64(disk.Bsize) {
		return unix.ENOSPC
	}
	return nil
}
