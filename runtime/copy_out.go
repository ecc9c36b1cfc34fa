package runtime

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
	"clove.run/clove/internal/sparse"
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
	// "/" has no last element; its archive begins with ".".
	return c.archiveAs(place, name, path.Join(".", strings.TrimPrefix(path.Base(name), "/")), to)
}

// archiveAs is archive with names that begin with top.
func (c copier) archiveAs(place *os.File, name, top string, to io.Writer) error {
	o := &outward{copier: c, to: to, archive: tar.NewWriter(to)}
	if err := o.add(place, top, 0); err != nil {
		return copyFailed(name, err)
	}
	// Nothing at all was written, so the only path itself is what could not be read.
	if len(o.left) > 0 && !o.wrote {
		return copyFailed(name, o.left[0].why)
	}
	if err := o.archive.Close(); err != nil {
		return copyFailed(name, err)
	}
	if len(o.left) > 0 {
		return &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: "not everything was copied", Err: &leftOut{o.left},
			Hint: "pipes, sockets, devices and what the agent may not read are never copied"}
	}
	return nil
}

// leftOut names what a whole archive lacks.
type leftOut struct{ paths []leftPath }

// leftPath is a path of an archive that is not in it.
type leftPath struct {
	name string
	why  error
}

// reason is why, without the path.
func (p leftPath) reason() string {
	var errno unix.Errno
	if errors.As(p.why, &errno) {
		return errno.Error()
	}
	return p.why.Error()
}

// namedLeft bounds the paths that the error itself names; the rest is counted.
const namedLeft = 5

func (l *leftOut) Error() string {
	var named []string
	for _, p := range l.paths[:min(len(l.paths), namedLeft)] {
		named = append(named, fmt.Sprintf("%s (%s)", p.name, p.reason()))
	}
	text := strings.Join(named, ", ")
	if more := len(l.paths) - namedLeft; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "left out: " + text
}

// maxLeft bounds the names that are remembered: an agent can make millions of files that it
// may not read itself.
const maxLeft = 1000

// Bounds on the holes of one copy, because an agent makes 16 TiB of them out of one block: maxHoles
// on those that the archive has as holes, which its reader passes over at some 10 GiB a second, and maxZeros on what is sent for
// others, of a file with many parts.
// An agent's own copies have fewer: their time is clove's.
const (
	maxHoles         = 1 << 40
	maxConfinedHoles = 16 << 30
	maxZeros         = 1 << 30
)

// maxHoles is the bound for a copy.
func (c copier) maxHoles() int64 {
	if c.confined {
		return maxConfinedHoles
	}
	return maxHoles
}

// notCopied is why something is never copied.
type notCopied string

func (n notCopied) Error() string { return string(n) }

const (
	errManyHoles = notCopied("it has too many holes")
	errShrunk    = notCopied("it became shorter meanwhile")
	errDeep      = notCopied("it is in too many folders")
)

// oddKinds are the kinds of files that no archive has.
var oddKinds = map[uint32]notCopied{unix.S_IFIFO: "it is a pipe", unix.S_IFSOCK: "it is a socket", unix.S_IFCHR: "it is a device", unix.S_IFBLK: "it is a device"}

// outward is one archive in the making.
type outward struct {
	copier
	to      io.Writer // of archive
	archive *tar.Writer
	wrote   bool
	holes   int64 // bytes that the archive has as holes
	zeros   int64 // bytes that were sent for nothing on the agent's disk
	left    []leftPath
	missing int   // as many as left, without its bound
	flat    bool  // a folder is added without what is in it
	entries int   // that were written
	files   int   // and links
	bytes   int64 // of the files
}

// leave notes a path that the archive will lack.
func (o *outward) leave(name string, why error) {
	o.missing++
	if len(o.left) < maxLeft {
		o.left = append(o.left, leftPath{name, why})
	}
}

// add writes what place is, and below it. Only a failure of the archive is an
// error; what cannot be read is left out.
func (o *outward) add(place *os.File, name string, depth int) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &s); err != nil {
		o.leave(name, err)
		return nil
	}
	switch kind := s.Mode & unix.S_IFMT; kind {
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
		fallthrough
	default:
		o.leave(name, oddKinds[kind])
	}
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
	if err := o.count(h); err != nil {
		return err
	}
	return o.archive.WriteHeader(h)
}

// maxEntries bounds what an agent's copy has of files, folders and links: each costs an inode.
const maxEntries = 100_000

// count counts an entry that is written next.
func (o *outward) count(h *tar.Header) error {
	if o.entries++; o.confined && o.entries > maxEntries {
		return &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: fmt.Sprintf("there are more than %d files", maxEntries),
			Hint: "copy a part of them, or put them into one file"}
	}
	if h.Typeflag != tar.TypeDir {
		o.files, o.bytes = o.files+1, o.bytes+h.Size
	}
	o.wrote = true
	return nil
}

// addLink reads the link that place refers to, whatever has its name by now. A target that
// fills the buffer may have been cut, so it counts as unreadable.
func (o *outward) addLink(place *os.File, name string, s unix.Stat_t) error {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(place.Fd()), "", target)
	if err != nil || n == len(target) {
		o.leave(name, cmp.Or(err, error(unix.ENAMETOOLONG)))
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
		o.leave(name, err)
		return nil
	}
	defer file.Close()
	parts, err := sparse.Parts(file, s.Size)
	if err != nil {
		o.leave(name, err)
		return nil
	}
	sent := sparse.Sum(parts)
	holes, zeros := o.holes+s.Size-sent, o.zeros+max(0, sent-s.Blocks*512)
	if holes > o.maxHoles() || zeros > maxZeros {
		o.leave(name, errManyHoles) // the next one may fit
		return nil
	}
	o.holes, o.zeros = holes, zeros
	h := o.header(tar.TypeReg, name, s)
	h.Size = s.Size
	if err := o.count(h); err != nil {
		return err
	}
	// The header promises a size: what a growing file has beyond it is not sent, and of a shorter
	// one zeros, as in tar(1).
	short, err := sparse.Write(o.to, o.archive, h, file, parts)
	if short {
		o.leave(name, errShrunk)
	}
	return err
}

// addFolder writes the folder itself first, so that one whose content cannot be read is in
// the archive at least.
func (o *outward) addFolder(place *os.File, name string, s unix.Stat_t, depth int) error {
	h := o.header(tar.TypeDir, name+"/", s)
	if err := o.write(h); err != nil || o.flat {
		return err
	}
	folder, err := beneath.OpenChild(place, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil || depth >= maxDepth {
		if err == nil {
			folder.Close()
		}
		o.leave(name, cmp.Or(err, error(errDeep)))
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
			o.leave(name, err)
			return nil
		}
	}
}

// addChild opens the child as a place (O_PATH), so that no device, pipe or socket of the
// agent's is ever opened.
func (o *outward) addChild(folder *os.File, child, name string, depth int) error {
	place, err := beneath.OpenPlace(folder, child)
	if err != nil {
		o.leave(name, err)
		return nil
	}
	defer place.Close()
	return o.add(place, name, depth)
}
