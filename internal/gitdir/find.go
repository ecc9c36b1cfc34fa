package gitdir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Link is where the .git file of a folder leads.
type Link struct {
	Target string // as the file has it, perhaps relative to the folder
	Dir    string // the git directory, absolute
	// Common is the repository that has the objects and refs, a canonical path. It is empty if
	// nothing shows that it belongs to the folder.
	Common string
	Own    string // Dir as a canonical path
	Owner  uint32 // of the folder and of Common
	// Foreign says why Common is empty.
	Foreign string
	back    string // the path from Dir to Common, as its commondir has it; empty: they are one
}

// Find reads the .git file of folder. found is false if there is none: no .git, a whole
// repository, a link, or a file that git would not follow either. named is the canonical path of
// a repository, or of a git directory, that belongs to the folder although nothing in it says
// so; empty: none is known.
func Find(folder, named string) (l Link, found bool) {
	text, err := read(filepath.Join(folder, ".git"))
	target, isLink := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !isLink || target == "" {
		return Link{}, false
	}
	l = Link{Target: target, Dir: from(folder, target)}
	if err := l.confirm(folder, named); err != nil {
		l.Common, l.Foreign = "", err.Error()
	}
	return l, true
}

// Inside is the path at which git looks for the repository if the folder appears at place.
func (l Link) Inside(place string) string { return from(l.At(place), l.back) }

// At is the path at which git looks for the folder's own git directory if the folder appears at place.
func (l Link) At(place string) string { return from(place, l.Target) }

// confirm sets Common if the repository names the folder back.
func (l *Link) confirm(folder, named string) (err error) {
	if l.Own, err = filepath.EvalSymlinks(l.Dir); err != nil {
		return errors.New("does not exist, or cannot be read")
	}
	// Only a worktree has this file.
	if l.back, err = read(filepath.Join(l.Dir, "commondir")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.New("has no repository that you can read")
	}
	if l.Common, err = filepath.EvalSymlinks(from(l.Dir, l.back)); err != nil {
		return errors.New("has no repository that you can read")
	}
	if l.back != "" && filepath.Dir(l.Own) != filepath.Join(l.Common, "worktrees") {
		return fmt.Errorf("is not among the worktrees of %q", l.Common)
	}
	switch {
	case named != "" && named != l.Own && named != l.Common:
		return fmt.Errorf("is not in %q", named)
	case named == "" && l.back != "" && !namesBack(l.Own, folder):
		return errors.New("is another folder's")
	}
	var one bool
	if l.Owner, one = oneOwner(folder, l.Own, l.Common); !one {
		return errors.New("has another owner than this folder")
	}
	if !isRepository(l.Common) {
		return errors.New("does not look like git's")
	}
	if named == "" && l.back == "" && !l.isModule(folder) {
		return errors.New("does not say that it is this folder's")
	}
	return nil
}

// isModule reports whether the repository's configuration names the folder, as a submodule's does.
func (l *Link) isModule(folder string) bool {
	r, err := l.open()
	if err != nil {
		return false
	}
	defer r.dir.Close()
	config, err := r.text("config")
	worktree := lookup(settingsIn(config), "core.worktree")
	return err == nil && worktree != "" && sameFolder(from(l.Own, worktree), folder)
}

// sameFolder compares canonical paths.
func sameFolder(a, b string) bool {
	a, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	b, err = filepath.EvalSymlinks(b)
	return err == nil && a == b
}

// namesBack compares canonical paths and not files: see the package comment.
func namesBack(dir, folder string) bool {
	text, err := read(filepath.Join(dir, "gitdir"))
	if err != nil || filepath.Base(text) != ".git" {
		return false
	}
	return sameFolder(filepath.Dir(from(dir, text)), folder)
}

func oneOwner(paths ...string) (owner uint32, one bool) {
	for i, path := range paths {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || i > 0 && st.Uid != owner {
			return 0, false
		}
		owner = st.Uid
	}
	return owner, true
}

func isRepository(dir string) bool {
	is := func(name string, kind uint32) bool {
		var st unix.Stat_t
		return unix.Lstat(filepath.Join(dir, name), &st) == nil && st.Mode&unix.S_IFMT == kind
	}
	return is("HEAD", unix.S_IFREG) && is("objects", unix.S_IFDIR) && is("refs", unix.S_IFDIR)
}

// from is path, which is relative to dir or absolute.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// lineBytes bounds a file with one path: PATH_MAX.
const lineBytes = unix.PathMax

// read returns the one line of a regular file. O_NONBLOCK, because the open of a FIFO would wait.
func read(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > lineBytes {
		return "", unix.EINVAL
	}
	text, err := io.ReadAll(io.LimitReader(file, lineBytes))
	line := strings.TrimRight(string(text), "\r\n")
	if strings.ContainsAny(line, "\x00\n") {
		return "", unix.EINVAL
	}
	return line, err
}
