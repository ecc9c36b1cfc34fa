package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/api"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/kernel/blob"
)

// Dir is the directory of blobs, root's alone.
type Dir string

// partSuffix ends the names of files of uploads.
const partSuffix = ".part"

func (d Dir) at(name string) string { return filepath.Join(string(d), name) }

func (d Dir) part(upload string) string { return d.at(upload + partSuffix) }

// write writes a part of an upload, which begins at most where the file ends, and returns its end.
func (d Dir) write(u *blob.Upload, p api.BlobWriteParams) (end int64, err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(d.part(u.ID), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	has, err := file.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return 0, err
	case p.Offset < 0 || p.Offset > has:
		return 0, api.Failure(api.CodeConflict, "write the parts in their order", "%d bytes are written, and the part begins at %d", has, p.Offset)
	case p.Offset+int64(len(p.Data)) > u.Bytes:
		return 0, api.Failure(api.CodeTooLarge, "open an upload with its whole size", "the upload has %d bytes, and the part ends at %d", u.Bytes, p.Offset+int64(len(p.Data)))
	}
	n, err := file.WriteAt(p.Data, p.Offset)
	return max(has, p.Offset+int64(n)), err
}

// sum puts an upload on the disk and returns its SHA-256. One that has another size than was said is an error.
func (d Dir) sum(ctx context.Context, u *blob.Upload) (digest string, err error) {
	file, err := os.Open(d.part(u.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return "", short(u, 0)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, buffer := sha256.New(), make([]byte, 256<<10)
	size := int64(0)
	for err == nil {
		var n int
		n, err = file.Read(buffer)
		sum.Write(buffer[:n])
		size += int64(n)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return "", err
	case size != u.Bytes:
		return "", short(u, size)
	}
	return hex.EncodeToString(sum.Sum(nil)), file.Sync()
}

func short(u *blob.Upload, size int64) error {
	return api.Failure(api.CodeConflict, "write the rest with blob.write", "%d of %d bytes are written", size, u.Bytes)
}

// name gives the file of an upload its name as a blob, which it returns also with an error behind that.
func (d Dir) name(u *blob.Upload, digest string) (file string, err error) {
	file = digest + "." + u.ID
	if err := os.Rename(d.part(u.ID), d.at(file)); err != nil {
		return "", err
	}
	return file, atomicfile.Sync(string(d))
}

// read reads a part of a blob's file.
func (d Dir) read(r *blob.Row, offset int64) (part api.BlobReadResult, err error) {
	if offset < 0 || offset > r.Bytes {
		return part, api.Failure(api.CodeParams, "", "the blob has %d bytes, and the part begins at %d", r.Bytes, offset)
	}
	file, err := os.Open(d.at(r.File))
	if errors.Is(err, fs.ErrNotExist) {
		return part, blob.Missing(r.SHA256) // the last reference went meanwhile
	}
	if err != nil {
		return part, err
	}
	defer file.Close()
	part.Bytes, part.Data = r.Bytes, make([]byte, min(api.BlobPartMost, r.Bytes-offset))
	if _, err := file.ReadAt(part.Data, offset); err != nil {
		return part, err
	}
	if end := offset + int64(len(part.Data)); end < r.Bytes {
		part.NextOffset = end
	}
	return part, nil
}

// remove removes a file. One that is not there is no error.
func (d Dir) remove(name string) error {
	if err := os.Remove(d.at(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// names are those of the files that are there.
func (d Dir) names() (all []string, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

// uploadOf is the upload whose file has the name, or had it before it was a blob's.
func uploadOf(name string) string {
	if id, is := strings.CutSuffix(name, partSuffix); is {
		return id
	}
	_, id, _ := strings.Cut(name, ".")
	return id
}
