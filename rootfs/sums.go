package rootfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// sums reads files for Change.Sum.
type sums struct {
	linked map[uint64]string // of files with several names, by inode: these are read once
}

// addSum reads the file of a change. Its time is bound by the layer's disk: holes are not read.
func (p *place) addSum(ctx context.Context, c *Change, name string, now unix.Stat_t) error {
	if p.sums == nil || fileType(now.Mode) != TypeFile {
		return nil
	}
	if sum, known := p.sums.linked[now.Ino]; known {
		c.Sum = sum
		return nil
	}
	file, err := p.differ.upper.openRegular(path.Join(p.rel, name))
	if err != nil {
		return err
	}
	defer file.Close()
	if c.Sum, err = sumOf(ctx, file, now.Size); err == nil && now.Nlink > 1 {
		p.sums.linked[now.Ino] = c.Sum
	}
	return err
}

// sumBlock is how much of a file is looked at as one, in bytes.
const sumBlock = 64 << 10

// sumOf is the SHA-256 of a file's size and of its blocks, each with its number, without those of zeros alone: a hole is
// not told from zeros, as it is not by what reads the file.
func sumOf(ctx context.Context, file *os.File, size int64) (string, error) {
	all := sha256.New()
	number(all, size)
	zeros, buffer := make([]byte, sumBlock), make([]byte, sumBlock)
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		data, err := unix.Seek(int(file.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // only a hole is left
		}
		if err != nil {
			return "", fmt.Errorf("cannot find its data: %w", err)
		}
		at = data - data%sumBlock
		n, err := file.ReadAt(buffer[:min(sumBlock, size-at)], at)
		if err != nil && err != io.EOF {
			return "", err
		}
		if !bytes.Equal(buffer[:n], zeros[:n]) {
			number(all, at/sumBlock)
			all.Write(buffer[:n])
		}
		at += sumBlock
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

func number(to hash.Hash, n int64) { to.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
