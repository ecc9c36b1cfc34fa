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
	back    string // the relative path from Dir to Common, as its commondir has it; or Common's own
}

// Find reads the .git file of folder. found is false if there is none: no .git, a whole
// repository, a link, or a file that git would not follow either.
func Find(folder string) (l Link, found bool) {
	text, err := read(filepath.Join(folder, ".git"))
	target, named := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !named || target == "" {
		return Link{}, false
	}
	l = Link{Target: target, Dir: from(folder, target)}
	if err := l.confirm(folder); err != nil {
		l.Common, l.Foreign = "", err.Error()
	}
	return l, true
}

// Inside is the path at which git looks for the repository if the folder appears at place.
func (l Link) Inside(place string) string { return from(l.At(place), l.back) }

// At is the path at which git looks for the folder's own git directory if the folder appears at place.
func (l Link) At(place string) string { return from(place, l.Target) }

// confirm sets Common if the repository names the folder back.
func (l *Link) confirm(folder string) (err error) {
	if l.back, err = read(filepath.Join(l.Dir, "commondir")); err != nil {
		return errors.New("does not say that it is this folder's, or cannot be read")
	}
	if l.Common, err = filepath.EvalSymlinks(from(l.Dir, l.back)); err != nil {
		return errors.New("has no repository that you can read")
	}
	dir, err := filepath.EvalSymlinks(l.Dir)
	if err != nil || filepath.Dir(dir) != filepath.Join(l.Common, "worktrees") {
		return fmt.Errorf("is not among the worktrees of %q", l.Common)
	}
	if !namesBack(dir, folder) {
		return errors.New("is another folder's")
	}
	var one bool
	if l.Owner, one = oneOwner(folder, dir, l.Common); !one {
		return errors.New("has another owner than this folder")
	}
	l.Own = dir
	if !isRepository(l.Common) {
		return errors.New("does not look like git's")
	}
	return nil
}

// namesBack compares canonical paths and not files: see the package comment.
func namesBack(dir, folder string) bool {
	text, err := read(filepath.Join(dir, "gitdir"))
	if err != nil || filepath.Base(text) != ".git" {
		return false
	}
	named, err := filepath.EvalSymlinks(filepath.Dir(from(dir, text)))
	if err != nil {
		return false
	}
	own, err := filepath.EvalSymlinks(folder)
	return err == nil && named == own
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
