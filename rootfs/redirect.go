package rootfs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// overlayfs renames a directory of the lower layer by an attribute: an upper directory with
// "redirect" is merged with the lower directory that the attribute names, by a name beside it or
// by a path from the top, in the names of the lower layer. A whiteout has the former name. Only
// the kernel writes the attribute (overlayMark says why). If a layer had a forged one, the kernel
// would look the path up in the same lower layer, element by element, without links, mounts and
// "..", so it shows the agent another part of what it sees anyway. Diff and Apply take it for a
// claim: they look it up by the same rules, and compare what is there with "origin", the file
// handle of the lower directory at the time when it was copied up.

// move is one renamed directory.
type move struct {
	from   string // path in the lower layer
	origin string // the attribute of this name
	why    refusal
}

// moves are the renamed directories of one upper directory.
type moves struct {
	from map[string]move   // by the path in the upper directory
	to   map[string]string // that path, by the one in the lower layer
	// settled has the paths in the present lower layer of those that it has under their new
	// names already, because they were applied, by the path in the upper directory.
	settled map[string]string
}

// movesIn reads the attributes of all directories of upper.
func movesIn(ctx context.Context, upper beneath, read marks) (moves, error) {
	m := moves{map[string]move{}, map[string]string{}, map[string]string{}}
	return m, m.walk(ctx, upper, read, "", "")
}

// walk reads the directories in rel; below is the path of rel in the lower layer.
func (m moves) walk(ctx context.Context, upper beneath, read marks, rel, below string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := m.directory(upper, read, rel, below)
	if err != nil {
		return fmt.Errorf("cannot look for renamed directories in %s: %w", printable(rel), err)
	}
	for _, name := range names {
		at, lower := path.Join(rel, name), path.Join(below, name)
		if moved, ok := m.from[at]; ok {
			lower = moved.from
		}
		if err := m.walk(ctx, upper, read, at, lower); err != nil {
			return err
		}
	}
	return nil
}

// directory reads the attributes in rel and returns the directories in it. A path that is too
// long for the comparison is left out, as there.
func (m moves) directory(upper beneath, read marks, rel, below string) (folders []string, err error) {
	dir, err := upper.openDir(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := namesIn(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		st, ok, err := statAt(dir, name)
		if err != nil {
			return nil, err
		}
		if !ok || fileType(st.Mode) != TypeDir {
			continue
		}
		redirect, ok, err := read(dir, name, "redirect")
		if err != nil {
			return nil, err
		}
		if ok {
			origin, _, err := read(dir, name, "origin")
			if err != nil {
				return nil, err
			}
			m.add(path.Join(rel, name), below, redirect, origin)
		}
		if len(rel)+1+len(name)+1+unix.NAME_MAX <= maxPath {
			folders = append(folders, name)
		}
	}
	return folders, nil
}

// add enters the directory at, whose parent is below in the lower layer.
func (m moves) add(at, below, redirect, origin string) {
	elements := strings.Split(strings.TrimPrefix(redirect, "/"), "/")
	absolute := strings.HasPrefix(redirect, "/")
	strange := func(e string) bool { return e == "" || e == "." || e == ".." || strings.Contains(e, "\x00") }
	if slices.ContainsFunc(elements, strange) || !absolute && len(elements) > 1 {
		m.from[at] = move{why: "the layer names no directory from which it was renamed"}
		return
	}
	from := path.Join(elements...)
	if !absolute {
		from = path.Join(below, from)
	}
	if _, twice := m.to[from]; twice {
		m.from[at] = move{from: from, why: "the layer has two directories that were renamed from the same one"}
		return
	}
	m.from[at], m.to[from] = move{from: from, origin: origin}, at
}

// settle finds what the host has under its new name already. The others are in it, if they were.
func (m moves) settle(lower beneath) {
	settled := map[string]string{}
	for _, at := range slices.Sorted(maps.Keys(m.from)) {
		moved := m.from[at]
		place := m.below(at)
		if dir, err := lower.openDir(place); err == nil {
			if moved.why == "" && hasHandle(dir, moved.origin) {
				settled[moved.from], m.settled[at] = place, place
				delete(m.from, at)
				delete(m.to, moved.from)
			}
			dir.Close()
		}
	}
	for at, moved := range m.from {
		for up := moved.from; up != "."; up = path.Dir(up) {
			if place, ok := settled[up]; ok && moved.why == "" {
				delete(m.to, moved.from)
				moved.from = place + moved.from[len(up):]
				m.from[at], m.to[moved.from] = moved, at
				break
			}
		}
	}
}

// below is the path in the lower layer that belongs to the path at, by its name.
func (m moves) below(at string) string {
	for up := path.Dir(at); up != "."; up = path.Dir(up) {
		if moved, ok := m.from[up]; ok {
			return moved.from + at[len(up):]
		}
	}
	return at
}

// renamed records a renamed directory, and returns the lower directory of it. If the host's is
// gone or another one, it has none, and everything in it counts as new.
func (p *place) renamed(ctx context.Context, name string, m move, now, before unix.Stat_t, existed bool) (view, error) {
	c, err := p.describe(Renamed, p.upper, name, now)
	if err != nil {
		return view{}, err
	}
	c.From = p.differ.origin(m)
	if existed {
		c.Was = fileType(before.Mode)
	}
	p.newFolder(name)
	why := m.why
	if why == "" && p.differ.lower != nil {
		if why, err = p.checkOrigin(m); err != nil {
			return view{}, err
		}
	}
	below := view{present: why == "" && p.differ.lower != nil, rel: m.from}
	if below.present && p.judged {
		if why, err = p.carried(ctx, &c, m.from, path.Join(p.rel, name)); err != nil {
			return view{}, err
		}
	}
	c.Refused = string(why)
	return below, p.list(c)
}

// origin is the former path of a renamed directory inside.
func (d *differ) origin(m move) string {
	if m.from == "" {
		return ""
	}
	return sandboxPath(d.prefix, m.from)
}

// checkOrigin compares the host's directory with the one that the agent renamed.
func (p *place) checkOrigin(m move) (refusal, error) {
	dir, err := p.differ.lower.openDir(m.from)
	switch {
	case gone(err):
		return noOrigin(m.from), nil
	case err == unix.EXDEV:
		return errMounted, nil
	case p.differ.lower.hides(err):
		return "the host's " + refusal(printable(m.from)) + " cannot be read", nil
	case err != nil:
		return "", err
	}
	defer dir.Close()
	if isOrigin(dir, m.origin, p.differ.since) {
		return "", nil
	}
	return otherOrigin(m.from), nil
}

func noOrigin(from string) refusal {
	return refusal("the host has no directory " + printable(from) + " any more")
}

func otherOrigin(from string) refusal {
	return refusal("the host has another directory as " + printable(from) + " by now")
}

// isOrigin reports whether dir is the directory of which the layer has the file handle. A
// layer over a copy, or over a file system without handles, has none of the host's: then it
// must be unchanged since the layer began. Its change time cannot be set back, and moves
// when a directory is renamed into place.
func isOrigin(dir *os.File, origin string, since time.Time) bool {
	if hasHandle(dir, origin) {
		return true
	}
	var st unix.Stat_t
	return unix.Fstat(int(dir.Fd()), &st) == nil && time.Unix(st.Ctim.Unix()).Before(since)
}

// originHeader is the size of struct ovl_fb before the handle (fs/overlayfs/overlayfs.h):
// version, magic number, length, flags, type of the handle, and the file system's UUID.
const (
	originHeader = 21
	originType   = 4
)

// hasHandle compares dir with a file handle as overlayfs stores it. The kernel makes both by
// the same function, from the inode and its generation.
func hasHandle(dir *os.File, origin string) bool {
	if len(origin) <= originHeader {
		return false
	}
	handle, _, err := unix.NameToHandleAt(int(dir.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil || handle.Type() != int32(origin[originType]) {
		return false
	}
	return string(handle.Bytes()) == origin[originHeader:]
}
