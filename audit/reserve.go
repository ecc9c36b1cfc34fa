package audit

import (
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// allocate allocates the segment in use again. On a full disk it keeps what space there is
// for ends of runs.
func (w *writer) allocate() error {
	w.soft = w.options.SegmentBytes - w.options.ReserveBytes
	full := w.reserve(w.file, 0, w.options.SegmentBytes)
	if full == nil {
		return nil
	}
	w.soft = 0
	for bytes := w.options.ReserveBytes; bytes >= lineMax; bytes /= 2 {
		if w.reserve(w.file, w.size, bytes) == nil {
			break
		}
	}
	return full
}

// reserve allocates bytes of a segment from an offset, and what the hashes and checkpoints of
// so many bytes of records can take: two hashes for each record, of which none is shorter
// than 128 bytes, and half a byte for its share in a checkpoint. What does not fit is not
// begun: where fallocate(2) fails for that, ext4 keeps what it allocated before, which is
// then the last of the disk.
func (w *writer) reserve(segment *os.File, offset, bytes int64) error {
	signed, err := os.OpenFile(w.path(checkpointsName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer signed.Close()
	end, err := signed.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	extents := []extent{{segment, offset, bytes}, {w.hashes.file, tlog.StoredHashCount(int64(w.tip.tree.size)) * tlog.HashSize, bytes / 2}, {signed, end, bytes / 256}}
	var lack, left uint64
	for _, r := range extents {
		lacks, free, err := lacking(r.file, r.offset+r.bytes)
		if err != nil {
			return err
		}
		lack, left = lack+lacks, free
	}
	if lack > left {
		return unix.ENOSPC
	}
	var errs []error
	for _, r := range extents {
		errs = append(errs, preallocate(r.file, r.offset, r.bytes))
	}
	return errors.Join(errs...)
}

// extent is a part of a file.
type extent struct {
	file          *os.File
	offset, bytes int64
}

// lacking is how many bytes a file still needs to have so many, and how many are free.
func lacking(file *os.File, bytes int64) (lacks, free uint64, err error) {
	err = descriptor.Use(file, func(fd int) error {
		var is unix.Stat_t
		var disk unix.Statfs_t
		if err := errors.Join(unix.Fstat(fd, &is), unix.Fstatfs(fd, &disk)); err != nil {
			return err
		}
		lacks, free = uint64(max(0, bytes-is.Blocks*512)), disk.Bfree*uint64(disk.Bsize)
		if disk.Blocks == 0 { // a tmpfs without a bound
			free = math.MaxUint64
		}
		return nil
	})
	return lacks, free, err
}

// preallocate keeps the file's size. File systems that cannot do it (copy on write) give no
// reserve.
func preallocate(file *os.File, offset, bytes int64) error {
	err := descriptor.Use(file, func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, offset, bytes) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}
