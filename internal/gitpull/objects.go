package gitpull

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the format of packs
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

// Source is the agent's copy of the repository. Names are relative to it.
type Source interface {
	Names(dir string) ([]string, error) // one that is not there has none
	Open(name string) (*os.File, error) // regular files only
}

// Bounds of what is read of an agent.
const (
	mostObjects = 1 << 20
	mostBytes   = 16 << 30 // of all objects
)

// isHex reports whether a name is so many hexadecimal digits, as git writes them; 0: any number.
func isHex(name string, digits int) bool {
	return name != "" && (digits == 0 || len(name) == digits) && strings.Trim(name, "0123456789abcdef") == ""
}

func isLooseDir(name string) bool { return isHex(name, 2) }

// isLoose is for both formats of objects.
func isLoose(name string) bool { return isHex(name, 38) || isHex(name, 62) }

// isPack reports whether a name is that of a pack, or of a file that belongs to one.
func isPack(name, suffix string) bool {
	digits, found := strings.CutPrefix(strings.TrimSuffix(name, suffix), "pack-")
	return found && strings.HasSuffix(name, suffix) && isHex(digits, 0)
}

// left is what an agent left of objects, by name.
type left struct{ loose, packs []string }

// list finds the agent's objects. Other names are not read.
func list(from Source) (l left, err error) {
	dirs, err := from.Names("objects")
	if err != nil {
		return l, err
	}
	for _, dir := range dirs {
		names, err := from.Names(path.Join("objects", dir))
		if err != nil && (dir == "pack" || isLooseDir(dir)) {
			return l, err
		}
		for _, name := range names {
			at := path.Join("objects", dir, name)
			switch {
			case dir == "pack" && isPack(name, ".pack"):
				l.packs = append(l.packs, at)
			case isLooseDir(dir) && isLoose(name):
				l.loose = append(l.loose, at)
			}
		}
		if len(l.loose)+len(l.packs) > mostObjects {
			return l, fmt.Errorf("the agent left more than %d objects", mostObjects)
		}
	}
	return l, nil
}

// kinds are the types of objects in a pack (gitformat-pack(5)).
var kinds = map[string]byte{"commit": 1, "tree": 2, "blob": 3, "tag": 4}

// packer writes loose objects as one pack, so that git reads them as it reads what a stranger pushes.
type packer struct {
	to    io.Writer // the pack, and its checksum
	sum   hash.Hash
	room  int64 // bytes of content that may still come
	flate *zlib.Writer
}

func writePack(ctx context.Context, to io.Writer, from Source, loose []string) error {
	p := packer{sum: sha1.New(), room: mostBytes} //nolint:gosec // the format of packs
	if len(loose) > 0 && len(path.Base(loose[0])) == 62 {
		p.sum = sha256.New()
	}
	buffer := bufio.NewWriter(to)
	p.to = io.MultiWriter(buffer, p.sum)
	p.flate, _ = zlib.NewWriterLevel(p.to, zlib.BestSpeed) // a level that exists
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(loose)))
	if _, err := p.to.Write(head); err != nil {
		return err
	}
	for _, name := range loose {
		if err := errors.Join(ctx.Err(), p.add(from, name)); err != nil {
			return fmt.Errorf("object %s: %w", name, err)
		}
	}
	if _, err := buffer.Write(p.sum.Sum(nil)); err != nil {
		return err
	}
	return buffer.Flush()
}

// add writes one object, whose file is a zlib stream of "type size\0" and the content.
func (p *packer) add(from Source, name string) error {
	file, err := from.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	inflated, err := zlib.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	content := bufio.NewReader(inflated)
	kind, size, err := header(content)
	if err != nil {
		return err
	}
	if p.room -= size; p.room < 0 {
		return fmt.Errorf("the agent left more than %d GiB of objects", mostBytes>>30)
	}
	first := kind<<4 | byte(size&15)
	var entry []byte
	for rest := size >> 4; ; rest >>= 7 {
		if rest == 0 {
			entry = append(entry, first)
			break
		}
		entry, first = append(entry, first|0x80), byte(rest&0x7f)
	}
	if _, err := p.to.Write(entry); err != nil {
		return err
	}
	p.flate.Reset(p.to)
	if _, err := io.CopyN(p.flate, content, size); err != nil {
		return errors.Join(errDamaged, err)
	}
	if _, err := content.ReadByte(); err != io.EOF {
		return errDamaged
	}
	return p.flate.Close()
}

// header reads the type and the size of a loose object.
func header(content *bufio.Reader) (kind byte, size int64, err error) {
	var text []byte
	for {
		c, err := content.ReadByte()
		if err != nil || len(text) > 32 {
			return 0, 0, errors.Join(errDamaged, err)
		}
		if c == 0 {
			break
		}
		text = append(text, c)
	}
	word, digits, _ := strings.Cut(string(text), " ")
	size, err = strconv.ParseInt(digits, 10, 64)
	kind, known := kinds[word]
	if err != nil || size < 0 || !known {
		return 0, 0, errDamaged
	}
	return kind, size, nil
}

var errDamaged = errors.New("it is damaged")
