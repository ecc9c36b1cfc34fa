package rootfs

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Contents are both sides of a change of a file or a link, whose content is its target. A side
// that does not exist, or is of another type, has none.
type Contents struct {
	Before []byte // the host's
	After  []byte // the agent's
	Mode   uint32 // as Change.Mode, of the host's; 0 if it has none
	// Omitted is why both are missing; empty otherwise.
	Omitted string
}

// addContents reads both sides of a change, if its path was asked for. before and now are nil for
// a side that does not exist.
func (p *place) addContents(c *Change, name string, now, before *unix.Stat_t) (err error) {
	if !hasContents(now) && !hasContents(before) || !slices.ContainsFunc(p.paths, func(at string) bool { return within(c.Path, at) }) {
		return nil
	}
	both := &Contents{}
	c.Contents = both
	if before != nil {
		both.Mode = before.Mode & permissions
		both.Before, err = p.content(side{*p.differ.lower, p.lower, name, p.lowerRel(name), *before})
		if err == unix.EXDEV || p.differ.lower.hides(err) {
			both.Omitted, err = "the host's cannot be read", nil
		}
	}
	if now != nil && err == nil {
		both.After, err = p.content(side{p.differ.upper, p.upper, name, path.Join(p.rel, name), *now})
	}
	switch err {
	case unix.EFBIG:
		both.Omitted, err = "larger than 1 MiB", nil
	case errMuch:
		both.Omitted, err = "there is too much to show at once: name fewer files", nil
	}
	if both.Omitted != "" {
		both.Before, both.After = nil, nil
	}
	return err
}

func hasContents(st *unix.Stat_t) bool {
	return st != nil && (fileType(st.Mode) == TypeFile || fileType(st.Mode) == TypeSymlink)
}

// content is that of one side, within half of the room that the list has left.
func (p *place) content(s side) (text []byte, err error) {
	switch fileType(s.st.Mode) {
	case TypeFile:
		text, err = readShort(s.tree, s.rel)
	case TypeSymlink:
		var target string
		target, err = s.tree.readLink(s.dir, s.name)
		text = []byte(target)
	}
	switch {
	case err != nil:
		return nil, err
	case len(text) > *p.room/2:
		return nil, errMuch
	}
	*p.room -= len(text)
	return text, nil
}

// HostID is the host's id of the agent's id 0, to which files of the layer belong.
func (l *Layer) HostID() uint32 { return l.table.HostID }

// Place opens what the layer has at a clean absolute path inside, to look at it (O_PATH), a link as
// the link itself. A path with a link in it is ELOOP; ENOENT is also what was deleted, and what the
// agent did not change.
func (l *Layer) Place(inside string) (*os.File, error) {
	var upper Upper
	for _, u := range l.Uppers() {
		if within(inside, u.Prefix) && len(u.Prefix) >= len(upper.Prefix) {
			upper = u
		}
	}
	if upper.Dir == "" {
		return nil, unix.ENOENT
	}
	tree, err := openBeneath(upper.Dir, 0, nil)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	file, err := tree.open(strings.TrimPrefix(strings.TrimPrefix(inside, upper.Prefix), "/"), unix.O_PATH)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || fileType(st.Mode) == TypeChar && st.Rdev == 0 {
		file.Close()
		return nil, cmp.Or(err, error(unix.ENOENT))
	}
	return file, nil
}
