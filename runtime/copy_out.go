package runtime

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
)

// maxDepth bounds the folders that a copy has open: an agent can nest them
// without end.
const maxDepth = 200

// out writes the archive of one path.
func (c copier) out(name string, to io.Writer) error {
	// As in CopyIn, from the agent's root.
	name = path.Clean("/" + name)
	place, err := beneath.Open(c.root, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return copyFailed(name, err)
	}
	defer place.Close()
	return c.archive(place, name, to)
}

// archive writes the archive of what was opened at name.
func (c copier) archive(place *os.File, name string, to io.Writer) error {
	o := &outward{copier: c, archive: tar.NewWriter(to)}
	// "/" has no last element; its archive begins with ".".
	top := strings.TrimPrefix(path.Base(name), "/")
	if err := o.add(place, path.Join(".", top), 0); err != nil {
		return copyFailed(name, err)
	}
	// Nothing at all was written, so the only path itself is what could not be read.
	if len(o.left) > 0 && !o.wrote {
		return copyFailed(name, &fs.PathError{Op: "read", Path: o.left[0], Err: unix.EPERM})
	}
	if err := o.archive.Close(); err != nil {
		return copyFailed(name, err)
	}
	if len(o.left) > 0 {
		return &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: "not everything was copied", Err: &leftOut{o.left},
			Hint: "these are never copied: pipes, sockets, devices, files that the agent may not read or that change meanwhile, and more than 1 GiB of holes in sparse files"}
	}
	return nil
}

// leftOut names what a whole archive lacks.
type leftOut struct{ names []string }

// namedLeft bounds the paths that the error itself names; the rest is counted.
const namedLeft = 5

func (l *leftOut) Error() string {
	text := strings.Join(l.names[:min(len(l.names), namedLeft)], ", ")
	if more := len(l.names) - namedLeft; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "left out: " + text
}

// maxLeft bounds the names that are remembered: an agent can make millions of files that it
// may not read itself.
const maxLeft = 1000

// maxHoles bounds what a copy sends for the holes of sparse files: a tar archive
// has none, and an agent makes 16 TiB of them out of one block.
const maxHoles = 1 << 30

// outward is one archive in the making.
type outward struct {
	copier
	archive *tar.Writer
	wrote   bool
	holes   int64 // bytes that were sent for nothing on the agent's disk
	left    []string
}

// leave notes a path that the archive will lack.
func (o *outward) leave(name string) {
	if len(o.left) < maxLeft {
		o.left = append(o.left, name)
	}
}

// add writes what place is, and below it. Only a failure of the archive is an
// error; what cannot be read is left out.
func (o *outward) add(place *os.File, name string, depth int) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &s); err != nil {
		o.leave(name)
		return nil
	}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return o.addFolder(place, name, s, depth)
	case unix.S_IFREG:
		return o.addFile(place, name, s)
	case unix.S_IFLNK:
		return o.addLink(place, name, s)
	case unix.S_IFCHR:
		if o.kept && s.Rdev == 0 {
			return nil // what the agent deleted
		}
	}
	o.leave(name)
	return nil
}

// header is what all kinds have. Ids are the sandbox's; set-id bits would mean another's
// rights where the archive is unpacked. PAX keeps times below a second, and names and sizes
// of any length.
func (o *outward) header(kind byte, name string, s unix.Stat_t) *tar.Header {
	inside := func(id uint32) int {
		// Without a sign: an id below the agent's range wraps around and counts as outside
		// too.
		if id -= o.hostID; id < agent.IDsPerAgent {
			return int(id)
		}
		return 0
	}
	return &tar.Header{Typeflag: kind, Name: name, Mode: int64(s.Mode & 0o1777), Uid: inside(s.Uid), Gid: inside(s.Gid),
		ModTime: time.Unix(s.Mtim.Unix()), Format: tar.FormatPAX}
}

func (o *outward) write(h *tar.Header) error {
	o.wrote = true
	return o.archive.WriteHeader(h)
}

// addLink reads the link that place refers to, whatever has its name by now. A target that
// fills the buffer may have been cut, so it counts as unreadable.
func (o *outward) addLink(place *os.File, name string, s unix.Stat_t) error {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(place.Fd()), "", target)
	if err != nil || n == len(target) {
		o.leave(name)
		return nil
	}
	h := o.header(tar.TypeSymlink, name, s)
	h.Linkname = string(target[:n])
	return o.write(h)
}

// addFile reopens the file to read it: an O_PATH descriptor was opened without a check
// of permissions, and the reopening is the check.
func (o *outward) addFile(place *os.File, name string, s unix.Stat_t) error {
	file, err := beneath.Reopen(place, os.O_RDONLY)
	if err != nil {
		o.leave(name)
		return nil
	}
	defer file.Close()
	if o.holes += max(0, s.Size-s.Blocks*512); o.holes > maxHoles {
		o.leave(name) // a few blocks inside would be many bytes here
		return nil
	}
	h := o.header(tar.TypeReg, name, s)
	h.Size = s.Size
	if err := o.write(h); err != nil {
		return err
	}
	// The header has promised a size, so what a growing file has beyond it is not sent.
	n, err := io.Copy(o.archive, io.LimitReader(file, h.Size))
	if n < h.Size && err == nil {
		// The file became shorter. Its header has promised a size, so zeros follow, as in
		// tar(1).
		o.leave(name)
		_, err = io.CopyN(o.archive, zeros{}, h.Size-n)
	}
	return err
}

// zeros fills the place of what a shrunken file no longer has.
type zeros struct{}

func (zeros) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

// addFolder writes the folder itself first, so that one whose content cannot be read is in
// the archive at least.
func (o *outward) addFolder(place *os.File, name string, s unix.Stat_t, depth int) error {
	h := o.header(tar.TypeDir, name+"/", s)
	if err := o.write(h); err != nil {
		return err
	}
	folder, err := beneath.OpenChild(place, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil || depth >= maxDepth {
		if err == nil {
			folder.Close()
		}
		o.leave(name)
		return nil
	}
	defer folder.Close()
	for {
		names, err := folder.Readdirnames(1000) // a folder may hold millions
		slices.Sort(names)
		for _, child := range names {
			if err := o.addChild(folder, child, path.Join(name, child), depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			o.leave(name)
			return nil
		}
	}
}

// addChild opens the child as a place (O_PATH), so that no device, pipe or socket of the
// agent's is ever opened.
func (o *outward) addChild(folder *os.File, child, name string, depth int) error {
	place, err := beneath.OpenPlace(folder, child)
	if err != nil {
		o.leave(name)
		return nil
	}
	defer place.Close()
	return o.add(place, name, depth)
}
