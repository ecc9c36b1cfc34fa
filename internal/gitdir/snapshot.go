package gitdir

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/beneath"
)

// SharedObjects is where an agent finds the objects of the host's repository, below its own.
const SharedObjects = "shared-objects"

// Snapshot is what an agent gets of a repository: all but its objects, as text.
type Snapshot struct {
	Files map[string]string // by path below Common
	// Ref is what a commit in the folder moves: a branch, refs/heads/..., or HEAD itself.
	Ref string
	Tip string // the object that Ref names, in hexadecimal; empty: none yet
}

// Bounds of a snapshot.
const (
	mostBytes = 256 << 20
	mostFiles = 100_000
)

// Private is the path of the folder's own git directory below Common; "." for Common itself.
func (l Link) Private() string {
	if l.Own == l.Common {
		return "."
	}
	return path.Join("worktrees", filepath.Base(l.Own))
}

// Read reads what an agent in the folder, which appears at place, needs of the repository:
// HEAD, the index, a configuration without credentials, info, logs, and all refs as packed ones.
// So the agent finds the repository as it was at the start, whatever the host does with
// its refs. No link is followed, and no other file system is entered.
func (l Link) Read(place string) (Snapshot, error) {
	switch inside := l.Inside(place); {
	case l.At(place) != path.Join(inside, l.Private()):
		return Snapshot{}, errors.New("is reached by a link of another name")
	case inside == place || strings.HasPrefix(inside, place+"/"):
		return Snapshot{}, errors.New("would appear in the workspace itself")
	case slices.Contains([]string{"", "proc", "sys", "dev"}, strings.Split(inside, "/")[1]):
		return Snapshot{}, errors.New("would appear at a place of the kernel's")
	}
	r, err := l.open()
	if err != nil {
		return Snapshot{}, err
	}
	defer r.dir.Close()
	config, err := r.text("config")
	all := settingsIn(config)
	if err != nil {
		return Snapshot{}, err
	}
	if kind := lookup(all, "extensions.refstorage"); kind != "" && kind != "files" {
		return Snapshot{}, fmt.Errorf("has its refs in the form %q, which clove does not read", kind)
	}
	if borrowed, err := r.text("objects/info/alternates"); err != nil || strings.TrimSpace(borrowed) != "" {
		return Snapshot{}, errors.Join(errors.New("borrows objects of another repository (objects/info/alternates)"), err)
	}
	private := l.Private()
	r.files["config"] = shown(all)
	// Submodules of a worktree have git directories of their own, which are not shown. Without this
	// git status ends at the first.
	if modules, err := r.names(path.Join(private, "modules")); private != "." && len(modules) > 0 && err == nil {
		r.files["config"] += "[diff]\n\tignoreSubmodules = all\n"
	}
	r.files["objects/info/alternates"] = "../" + SharedObjects + "\n"
	for _, tree := range []string{"info", "logs", path.Join(private, "logs"), path.Join(private, "info")} {
		r.err = errors.Join(r.err, r.tree(tree))
	}
	for _, name := range []string{"HEAD", "shallow", path.Join(private, "HEAD")} {
		r.keep(name)
	}
	r.state(private)
	if private != "." {
		r.files[path.Join(private, "commondir")] = "../..\n"
		r.files[path.Join(private, "gitdir")] = path.Join(place, ".git") + "\n"
	}
	refs := r.refs()
	s := Snapshot{Files: r.files}
	s.Ref, s.Tip = current(r.files[path.Join(private, "HEAD")], refs)
	if s.Ref == "" {
		r.err = errors.Join(r.err, errors.New("has a HEAD that clove does not understand"))
	}
	return s, r.err
}

// Current reads the ref that a commit in the folder moves, and the object that it names.
func (l Link) Current() (ref, tip string, err error) {
	r, err := l.open()
	if err != nil {
		return "", "", err
	}
	defer r.dir.Close()
	head, err := r.text(path.Join(l.Private(), "HEAD"))
	if ref, tip = current(head, nil); err != nil || tip != "" || ref == "" {
		return ref, tip, err
	}
	if text, err := r.text(ref); err != nil || text != "" {
		return ref, ID(text), err
	}
	packed, err := r.text("packed-refs")
	return ref, Packed(packed)[ref], err
}

// current says where HEAD leads.
func current(head string, refs map[string]string) (ref, tip string) {
	head = strings.TrimRight(head, "\n")
	if id := ID(head); id != "" {
		return "HEAD", id
	}
	if ref, ok := strings.CutPrefix(head, "ref: "); ok && strings.HasPrefix(ref, "refs/heads/") && IsRef(ref) {
		return ref, refs[ref]
	}
	return "", ""
}

// ID is the name of an object, 40 or 64 lower-case hexadecimal digits with a line break or
// without; empty: text is none.
func ID(text string) string {
	text = strings.TrimSuffix(text, "\n")
	if (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == "" {
		return text
	}
	return ""
}

// IsRef reports whether name may be a ref below refs/. It is stricter than
// git-check-ref-format(1) with some.
func IsRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && len(name) < 1024 && path.Clean(name) == name && !strings.Contains(name, "..") && !strings.Contains(name, "@{") &&
		!slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
			return strings.HasPrefix(part, ".") || strings.HasPrefix(part, "-") || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".")
		}) && !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) })
}

// Packed reads a file packed-refs (git-pack-refs(1)).
func Packed(text string) map[string]string {
	refs := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if id, name, ok := strings.Cut(line, " "); ok && ID(id) != "" && IsRef(name) {
			refs[name] = id
		}
	}
	return refs
}

// reader reads a repository within bounds.
type reader struct {
	dir   *os.File
	files map[string]string
	bytes int64
	err   error
}

// open opens the repository by its canonical path, in which no link may be by now.
func (l Link) open() (*reader, error) {
	root, err := os.Open("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := beneath.OpenChild(root, strings.TrimPrefix(l.Common, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, errors.New("cannot be opened")
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil || stat.Uid != l.Owner {
		dir.Close()
		return nil, errors.Join(errors.New("has another owner than this folder"), err)
	}
	return &reader{dir: dir, files: map[string]string{}}, nil
}

// text reads a file. One that does not exist is empty.
func (r *reader) text(name string) (string, error) {
	file, err := beneath.OpenChild(r.dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("has a %s that is no file", name), err)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostBytes-r.bytes+1))
	if r.bytes += int64(len(text)); err == nil && r.bytes > mostBytes {
		err = fmt.Errorf("has more than %d MiB of refs, logs and index", mostBytes>>20)
	}
	return string(text), err
}

// keep takes a file over, if it is there.
func (r *reader) keep(name string) {
	text, err := r.text(name)
	if r.err = errors.Join(r.err, err); text != "" {
		r.files[name] = text
	}
}

// names lists a directory. One that does not exist has no entries.
func (r *reader) names(name string) ([]os.DirEntry, error) {
	dir, err := beneath.OpenChild(r.dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(mostFiles + 1)
	if len(entries) > mostFiles {
		err = fmt.Errorf("has more than %d files in %s", mostFiles, name)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// tree takes the regular files of a directory over.
func (r *reader) tree(name string) error {
	entries, err := r.names(name)
	for _, e := range entries {
		at := path.Join(name, e.Name())
		switch {
		case e.IsDir():
			err = errors.Join(err, r.tree(at))
		case e.Type().IsRegular():
			r.keep(at)
		}
		if len(r.files) > mostFiles {
			return fmt.Errorf("has more than %d refs and logs", mostFiles)
		}
	}
	return err
}

// state takes the index over, and what a merge that is not finished has left.
func (r *reader) state(private string) {
	entries, err := r.names(private)
	r.err = errors.Join(r.err, err)
	for _, e := range entries {
		name := e.Name()
		if e.Type().IsRegular() && (name == "index" || strings.HasPrefix(name, "sharedindex.") || strings.HasPrefix(name, "MERGE_") || strings.HasSuffix(name, "_HEAD") && name != "FETCH_HEAD") {
			r.keep(path.Join(private, name))
		}
	}
}

// refs takes all refs over as one file packed-refs, and symbolic ones as they are.
func (r *reader) refs() map[string]string {
	packed, err := r.text("packed-refs")
	refs := Packed(packed)
	r.err = errors.Join(r.err, err, r.tree("refs"))
	for name, text := range r.files {
		if !strings.HasPrefix(name, "refs/") || strings.HasPrefix(text, "ref: ") && IsRef(name) {
			continue
		}
		if delete(r.files, name); ID(text) != "" && IsRef(name) {
			refs[name] = ID(text)
		}
	}
	var out strings.Builder
	out.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		out.WriteString(refs[name] + " " + name + "\n")
	}
	r.files["packed-refs"] = out.String()
	return refs
}
