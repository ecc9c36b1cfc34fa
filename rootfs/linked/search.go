package linked

import (
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Files are the files of a root that is not built yet.
type Files interface {
	// Open opens the regular file at a clean absolute path, and follows links inside the
	// root. real is its path without links.
	Open(path string) (file File, real string, err error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
}

// Set are programs with the files that they need.
type Set struct {
	files   Files
	cache   map[string][]string // nil: not read yet
	looked  map[string]looked   // by path
	looks   int                 // how often it was asked
	found   map[string]bool     // by real path
	seen    map[string]bool     // by real path and the search path of those that loaded it
	missing map[string]string   // libraries that are nowhere, with a file that needs each
}

// setMost bounds the files of a set: each is a mount. pathsMost and looksMost bound the search:
// a hostile file can name a thousand libraries and as many directories.
const (
	setMost   = 2048
	pathsMost = 1 << 15
	looksMost = 1 << 20
)

// ErrTooMany means that a set has more files than a root has mounts for.
var ErrTooMany = fmt.Errorf("with their libraries they are more than %d files", setMost)

// NewSet is an empty set.
func NewSet(files Files) *Set {
	return &Set{files: files, looked: map[string]looked{}, found: map[string]bool{}, seen: map[string]bool{}, missing: map[string]string{}}
}

// Paths are the real paths of all files of the set, sorted.
func (s *Set) Paths() []string {
	var all []string
	for p := range s.found {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// Missing are the names of libraries that are nowhere, each with a file that needs it.
func (s *Set) Missing() map[string]string { return s.missing }

// wanted is an object whose needs are not followed yet.
type wanted struct {
	path      string
	inherited []string // DT_RPATH of the objects that loaded it
}

// Add adds the object at a path with all that it needs, and returns its real path. A script
// is added alone.
func (s *Set) Add(at string) (real string, err error) {
	queue := []wanted{{path: at}}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		name, more, err := s.follow(next)
		if err != nil {
			return real, err
		}
		if real == "" {
			real = name
		}
		queue = append(queue, more...)
	}
	return real, nil
}

// follow adds one object and returns what it needs.
func (s *Set) follow(w wanted) (real string, more []wanted, err error) {
	l := s.look(w.path)
	real = l.real
	if l.missing != nil {
		return "", nil, l.missing
	}
	key := real + "\x00" + strings.Join(w.inherited, ":")
	if s.seen[key] {
		return real, nil, nil
	}
	s.seen[key], s.found[real] = true, true
	if len(s.found) > setMost || len(s.seen) > 2*setMost {
		return real, nil, ErrTooMany
	}
	if l.script != "" {
		return real, nil, nil
	}
	if l.unread != nil {
		return real, nil, fmt.Errorf("%s: %w", w.path, l.unread)
	}
	if more, err = s.needs(l.object, real, w.inherited); s.exhausted() {
		err = ErrTooMany
	}
	return real, more, err
}

// exhausted reports whether the search has gone too far; it finds nothing more then.
func (s *Set) exhausted() bool { return s.looks > looksMost || len(s.looked) > pathsMost }

// looked is what was found at a path.
type looked struct {
	real             string
	missing          error // there is no file
	script, argument string
	object           Object
	unread           error // it is neither a script nor an object
}

// look reads a file once, however many programs need it.
func (s *Set) look(at string) looked {
	s.looks++
	l, known := s.looked[at]
	if known {
		return l
	}
	if s.exhausted() {
		return looked{missing: ErrTooMany}
	}
	file, real, err := s.files.Open(at)
	l.real, l.missing = real, err
	if err == nil {
		l.object, l.unread = Read(file)
		l.script, l.argument, _ = ScriptInterpreter(file)
		file.Close()
	}
	s.looked[at] = l
	return l
}

// Script is the interpreter that a script of the set names, with the argument of its first
// line; ok is false for any other file.
func (s *Set) Script(at string) (program, argument string, ok bool) {
	l := s.look(at)
	return l.script, l.argument, l.script != ""
}

// needs are the loader and the libraries of an object.
func (s *Set) needs(o Object, real string, inherited []string) (more []wanted, err error) {
	if o.Interpreter != "" {
		if !path.IsAbs(o.Interpreter) {
			return nil, fmt.Errorf("%s: its loader %q is no absolute path", real, o.Interpreter)
		}
		more = append(more, wanted{path: path.Clean(o.Interpreter)})
	}
	var own []string
	if o.RunPath == nil {
		own = expand(o.RPath, path.Dir(real))
	}
	passed := append(slices.Clone(own), inherited...)
	before := passed
	if o.RunPath != nil {
		before = expand(o.RunPath, path.Dir(real))
	}
	for _, name := range slices.Concat(o.Needed, opened[path.Base(real)]) {
		if s.exhausted() {
			return nil, ErrTooMany
		}
		at := s.find(name, before)
		if len(at) == 0 && slices.Contains(o.Needed, name) {
			s.missing[name] = real
		}
		for _, p := range at {
			more = append(more, wanted{p, passed})
		}
	}
	return more, nil
}

// find returns the files that the loader may take for a name: those of the first place that
// has one.
func (s *Set) find(name string, before []string) []string {
	if strings.Contains(name, "/") {
		if p := path.Clean(name); path.IsAbs(name) && s.isObject(p) {
			return []string{p}
		}
		return nil // relative to the working directory, which may be any
	}
	for _, dir := range before {
		if found := s.in(dir, name); len(found) > 0 || s.exhausted() {
			return found
		}
	}
	if found := s.objects(s.cached(name)); len(found) > 0 {
		return found
	}
	for _, dir := range standardDirs[runtime.GOARCH] {
		if found := s.in(dir, name); len(found) > 0 {
			return found
		}
	}
	return nil
}

// in are the files of that name in a directory, with those for better processors.
func (s *Set) in(dir, name string) []string {
	all := []string{path.Join(dir, name)}
	for _, better := range processors[runtime.GOARCH] {
		all = append(all, path.Join(dir, "glibc-hwcaps", better, name))
	}
	return s.objects(all)
}

func (s *Set) objects(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !s.isObject(p) })
}

// isObject leaves out what the loader passes over: libraries of another machine.
func (s *Set) isObject(at string) bool {
	l := s.look(at)
	return l.missing == nil && l.unread == nil
}

// cached are the paths that the loader's cache has for a name.
func (s *Set) cached(name string) []string {
	if s.cache == nil {
		s.cache = map[string][]string{}
		if file, _, err := s.files.Open(cachePath); err == nil {
			text, _ := io.ReadAll(io.NewSectionReader(file, 0, cacheMost)) // a part of it is as good as none
			file.Close()
			s.cache = parseCache(text)
		}
	}
	return slices.DeleteFunc(slices.Clone(s.cache[name]), func(p string) bool { return !path.IsAbs(p) || path.Clean(p) != p })
}

// expand replaces what ld.so(8) replaces in a search path, and leaves out what depends on the
// working directory.
func expand(dirs []string, origin string) (all []string) {
	for _, dir := range dirs {
		for _, name := range []string{"ORIGIN", "PLATFORM"} {
			value := map[string]string{"ORIGIN": origin, "PLATFORM": platforms[runtime.GOARCH]}[name]
			dir = strings.NewReplacer("${"+name+"}", value, "$"+name, value).Replace(dir)
		}
		for _, lib := range libNames[runtime.GOARCH] {
			each := strings.NewReplacer("${LIB}", lib, "$LIB", lib).Replace(dir)
			if each = path.Clean(each); path.IsAbs(each) && !slices.Contains(all, each) {
				all = append(all, each)
			}
		}
	}
	return all
}
