package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs/linked"
)

// ListError is a list of programs that cannot be held, or that its user cannot mean.
type ListError struct {
	Entry   string // of the list, or the command
	Problem string
	Hint    string
}

func (e *ListError) Error() string { return e.Entry + ": " + e.Problem }

// executables are the files and directories that have to be executable for Config.Execute,
// parents first. The files are read with the rights of the user who requested the run.
func (p Plan) executables() (found []executeOp, err error) {
	err = rightsOf(p.cfg.User, nsthread.StartAs, func() (err error) {
		v := newPreview(p)
		l := &list{view: v, files: linked.NewSet(v), dirs: map[string]string{}, names: map[string]bool{}, scripts: map[string][]string{}}
		found, err = l.read()
		return err
	})
	return found, err
}

// Executable reports whether the root's list of programs has the file at a path without links.
// A root without a list has every file.
func (p Plan) Executable(at string) bool {
	return p.cfg.Execute == nil || slices.ContainsFunc(p.hostInfo.Execute, func(e executeOp) bool { return at == e.Path || e.Dir && within(at, e.Path) })
}

// list is a list of programs while it is read.
type list struct {
	view    preview
	files   *linked.Set
	dirs    map[string]string   // real paths of directories, with the entry that named each
	names   map[string]bool     // of the files in dirs
	scripts map[string][]string // words of the first line, by real path
}

func (l *list) read() ([]executeOp, error) {
	for _, e := range l.view.plan.cfg.Execute {
		if err := l.entry(e); err != nil {
			return nil, err
		}
	}
	for _, check := range []func() error{l.checkScripts, l.checkMissing, l.checkWritable, l.checkCommand} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return l.operations(), nil
}

// entry adds what one entry names.
func (l *list) entry(e string) error {
	names, err := l.expand(e)
	if err != nil {
		return l.failed(e, err)
	}
	if len(names) == 0 {
		return &ListError{e, "nothing inside has such a name", "check the pattern; it is one of paths inside"}
	}
	for _, name := range names {
		if err := l.add(name, e); err != nil {
			return l.failed(e, err)
		}
	}
	return nil
}

// failed explains why an entry names no program.
func (l *list) failed(e string, err error) error {
	var known *ListError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		hint := "check the path; it is one inside, in the base system, a read-only volume or --rootfs"
		if l.view.writable(e) {
			return writableError(e)
		}
		return &ListError{e, "it does not exist inside", hint}
	case errors.Is(err, linked.ErrNoObject):
		return &ListError{e, linked.ErrNoObject.Error(), "name a program, a script that begins with #!, a library, or a folder of them"}
	case errors.Is(err, linked.ErrTooMany):
		return &ListError{e, err.Error(), "name the programs that the agent needs, or smaller folders"}
	}
	return &ListError{e, err.Error(), "name a program that can be read"}
}

// expand returns the paths that an entry stands for. Only a directory of the host has names.
func (l *list) expand(e string) ([]string, error) {
	if !strings.ContainsAny(e, `*?[\`) {
		return []string{e}, nil
	}
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.TrimPrefix(e, "/"), "/") {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(part, `*?[\`) {
				next = append(next, path.Join(dir, part))
				continue
			}
			_, names, err := l.view.names(dir)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if match, _ := path.Match(part, name); match { // the pattern is sound, see agent.Spec.Validate
					next = append(next, path.Join(dir, name))
				}
			}
		}
		found = next
	}
	return slices.DeleteFunc(found, func(p string) bool { _, n, err := l.view.resolve(p); return err != nil || n.Kind == "" }), nil
}

// add adds a program with its files, or a directory.
func (l *list) add(at, entry string) error {
	real, n, err := l.view.resolve(at)
	switch {
	case err != nil:
		return err
	case n.Planted || l.view.writable(real):
		return writableError(at)
	case n.Kind == kindDir:
		return l.addDir(real, entry)
	}
	if real, err = l.files.Add(real); err != nil {
		return err
	}
	if program, argument, isScript := l.files.Script(real); isScript {
		l.scripts[real] = []string{program, argument}
	}
	for _, pattern := range linked.Modules(real) {
		dirs, err := l.expand(pattern)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if dir, n, err := l.view.resolve(dir); err == nil && n.Kind == kindDir {
				if err := l.addDir(dir, entry); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addDir adds a directory as a whole, and the libraries that its files need elsewhere.
func (l *list) addDir(real, entry string) error {
	if real == "/" {
		return &ListError{entry, "it is the whole root", "name programs and folders of libraries, or omit the list"}
	}
	if l.dirs[real] != "" {
		return nil
	}
	l.dirs[real] = entry
	left := directoryMost
	queue := []string{real}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		_, names, err := l.view.names(dir)
		if err != nil {
			return err
		}
		if left -= len(names); left < 0 {
			return &ListError{entry, fmt.Sprintf("it has more than %d files", directoryMost), "name the folders below it that the agent needs"}
		}
		for _, name := range names {
			at := path.Join(dir, name)
			switch n, err := l.view.node(at); {
			case err != nil:
				return err
			case n.Kind == kindDir:
				queue = append(queue, at)
			case n.Kind == kindFile:
				l.names[name] = true
				// A folder has other files, too; only what is too much counts.
				if _, err := l.files.Add(at); errors.Is(err, linked.ErrTooMany) {
					return err
				}
			}
		}
	}
	return nil
}

// operations mount each directory and each file that is in none of them.
func (l *list) operations() []executeOp {
	var all []executeOp
	for dir := range l.dirs {
		outer := slices.ContainsFunc(slices.Collect(maps.Keys(l.dirs)), func(other string) bool { return other != dir && within(dir, other) })
		if !outer {
			all = append(all, executeOp{Path: dir, Dir: true})
		}
	}
	for _, file := range l.files.Paths() {
		if !l.inDir(file) {
			all = append(all, executeOp{Path: file})
		}
	}
	slices.SortFunc(all, func(a, b executeOp) int { return strings.Compare(a.Path, b.Path) })
	return all
}
