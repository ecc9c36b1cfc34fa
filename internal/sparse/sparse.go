package sparse

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MostParts bounds the parts of a file, so that their list fits into a PAX header of every reader.
const MostParts = 4096

// Part is a range of a file that has data, in bytes.
type Part struct{ Offset, Length int64 }

// Parts lists what of the first size bytes of a file has data. A file system that does not know
// holes has one part.
func Parts(file *os.File, size int64) (parts []Part, err error) {
	fd := int(file.Fd())
	for at := int64(0); at < size; {
		begin, err := unix.Seek(fd, at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO) || err == nil && begin >= size:
			return parts, nil // only a hole is left
		case err != nil:
			return []Part{{0, size}}, nil
		}
		end, err := unix.Seek(fd, begin, unix.SEEK_HOLE)
		if err != nil || end > size || len(parts) == MostParts-1 {
			end = size
		}
		parts, at = append(parts, Part{begin, end - begin}), end
	}
	return parts, nil
}

// Sum is the length of all parts together.
func Sum(parts []Part) (sum int64) {
	for _, p := range parts {
		sum += p.Length
	}
	return sum
}

// The records, in the order in which GNU tar must read them.
const (
	recordCount = "GNU.sparse.numblocks"
	recordMap   = "GNU.sparse.map"
	recordSize  = "GNU.sparse.size"
)

// Write writes a header and the parts of its file to archive, which writes to to, where h.Size is
// the size of the file. short reports whether the file had less meanwhile; zeros are in its place.
func Write(to io.Writer, archive *tar.Writer, h *tar.Header, file *os.File, parts []Part) (short bool, err error) {
	packed := Sum(parts)
	if packed == h.Size {
		if err := archive.WriteHeader(h); err != nil {
			return false, err
		}
		return fill(archive, file, Part{0, h.Size})
	}
	// Behind what is written of the file before.
	if err := archive.Flush(); err != nil {
		return false, err
	}
	header, err := headerOf(h, packed, parts)
	if err != nil {
		return false, err
	}
	if _, err := to.Write(header); err != nil {
		return false, err
	}
	for _, p := range parts {
		less, err := fill(to, file, p)
		short = short || less
		if err != nil {
			return short, err
		}
	}
	_, err = to.Write(make([]byte, (512-packed%512)%512))
	return short, err
}

// headerOf is h with the records. tar.Writer leaves out records of GNU's name and sorts the others,
// so it gets them under names of the same length that sort in the right order.
func headerOf(h *tar.Header, packed int64, parts []Part) ([]byte, error) {
	var list strings.Builder
	for _, p := range append(parts, Part{h.Size, 0}) { // the end, for a file that ends with a hole
		fmt.Fprintf(&list, ",%d,%d", p.Offset, p.Length)
	}
	sparse := *h
	sparse.Size, sparse.Format, sparse.PAXRecords = packed, tar.FormatPAX, maps.Clone(h.PAXRecords)
	if sparse.PAXRecords == nil {
		sparse.PAXRecords = map[string]string{}
	}
	sparse.PAXRecords["0"+recordCount[1:]] = strconv.Itoa(len(parts) + 1)
	sparse.PAXRecords["1"+recordMap[1:]] = list.String()[1:]
	sparse.PAXRecords["2"+recordSize[1:]] = strconv.FormatInt(h.Size, 10)
	var text bytes.Buffer
	if err := tar.NewWriter(&text).WriteHeader(&sparse); err != nil {
		return nil, err
	}
	// The first block has a name that an untrusted process chose, and the records come first in the
	// second.
	first, rest := text.Bytes()[:512], text.Bytes()[512:]
	for _, digit := range []string{"0", "1", "2"} {
		rest = bytes.Replace(rest, []byte(" "+digit+"NU.sparse."), []byte(" GNU.sparse."), 1)
	}
	return append(first[:512:512], rest...), nil
}

// fill writes one part, with zeros for what the file does not have any more.
func fill(to io.Writer, file *os.File, p Part) (short bool, err error) {
	n, err := io.Copy(to, io.NewSectionReader(file, p.Offset, p.Length))
	if err == nil && n < p.Length {
		_, err = io.CopyN(to, zeros{}, p.Length-n)
		return true, err
	}
	return false, err
}

type zeros struct{}

func (zeros) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

// ErrHoles says that an archive has more holes than its reader takes.
var ErrHoles = errors.New("it has too many holes")

// Read writes the content of h, which is next in from, to a new file, with its holes. room is how
// many bytes of holes it may have, of which it takes what it needs.
func Read(to *os.File, h *tar.Header, from io.Reader, room *int64) error {
	parts := partsOf(h)
	if parts == nil {
		_, err := io.Copy(to, from)
		return err
	}
	if *room -= h.Size - Sum(parts); *room < 0 {
		return ErrHoles
	}
	at := int64(0)
	for _, p := range parts {
		// archive/tar has zeros for a hole.
		if _, err := io.CopyN(io.Discard, from, p.Offset-at); err != nil {
			return err
		}
		if p.Length == 0 {
			break // the end
		}
		if _, err := to.Seek(p.Offset, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, p.Length); err != nil {
			return err
		}
		at = p.Offset + p.Length
	}
	return to.Truncate(h.Size)
}

// partsOf reads the records of a header that archive/tar has accepted; nil: it has none.
func partsOf(h *tar.Header) (parts []Part) {
	text, ok := h.PAXRecords[recordMap]
	if !ok {
		return nil
	}
	numbers := strings.Split(text, ",")
	at := int64(0)
	for i := 0; i+1 < len(numbers); i += 2 {
		offset, err := strconv.ParseInt(numbers[i], 10, 64)
		length, lerr := strconv.ParseInt(numbers[i+1], 10, 64)
		if err != nil || lerr != nil || offset < at || length < 0 || offset > h.Size || length > h.Size-offset {
			return nil
		}
		parts, at = append(parts, Part{offset, length}), offset+length
	}
	return parts
}
