package rootfs

import (
	"maps"
	"slices"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs/linked"
)

// Seen is what a run executed and loaded, as a list of programs would have it.
type Seen struct {
	// Programs are the files that such a list must name, sorted; files that belong to one of them
	// are left out.
	Programs []string
	// Refused are those of them that no list can name, each with the reason. Places that a
	// policy can make read-only count as read-only.
	Refused map[string]string
	// Used are the entries of the run's own list that were used.
	Used []string
}

// mostSeen bounds the files that are looked at. No list has as many entries.
const mostSeen = 1024

// Seen answers for files that were executed, and for those that were mapped as code. Both are
// real paths inside. It reads the same files of the host as the list of a run would.
func (p Plan) Seen(executed, mapped []string) (seen Seen, err error) {
	cfg, host := p.cfg, p.hostInfo
	// A list needs a read-only root. /dev/shm is not made here, so every place is read-only.
	cfg.ReadOnly, cfg.Writable, cfg.Execute, host.Execute = true, []string{"/dev/shm"}, nil, nil
	err = rightsOf(p.cfg.User, nsthread.StartAs, func() error {
		s := &sight{view: newPreview(planFor(cfg, host)), covered: map[string]bool{}, Seen: Seen{Refused: map[string]string{}}}
		mapped = s.entries(p.cfg.Execute, executed, mapped)
		s.programs(executed, mapped)
		s.together()
		seen = s.Seen
		return nil
	})
	return seen, err
}

// sight is what Seen knows so far.
type sight struct {
	Seen
	view    preview
	covered map[string]bool // files that belong to a program
	dirs    []string        // directories that belong to one
}

func (s *sight) list() *list {
	return &list{view: s.view, files: linked.NewSet(s.view), dirs: map[string]string{}, names: map[string]bool{}, scripts: map[string][]string{}}
}

// entries finds out which entries of the run's own list were used, and leaves out of mapped what
// that list refused.
func (s *sight) entries(own, executed, mapped []string) []string {
	if own == nil {
		return mapped
	}
	whole := s.list()
	for _, entry := range own {
		l := s.list()
		if l.entry(entry) != nil || whole.entry(entry) != nil {
			continue // the run started: the file is gone since
		}
		names, _ := s.list().expand(entry) // it was expanded before
		if slices.ContainsFunc(slices.Concat(executed, mapped), func(at string) bool {
			return l.inDir(at) || slices.ContainsFunc(names, func(name string) bool { real, _, err := s.view.resolve(name); return err == nil && real == at })
		}) {
			s.Used = append(s.Used, entry)
		}
	}
	return slices.DeleteFunc(slices.Clone(mapped), func(at string) bool { return !whole.executes(at) })
}

// programs looks at each file alone, programs first: a library that a program is linked with
// needs no entry.
func (s *sight) programs(executed, mapped []string) {
	looked := 0
	for _, at := range slices.Concat(executed, mapped) {
		if s.belongs(at) || slices.Contains(s.Programs, at) {
			continue
		}
		s.Programs = append(s.Programs, at)
		if looked++; looked <= mostSeen {
			s.look(at)
		}
	}
	s.Programs = slices.DeleteFunc(s.Programs, func(at string) bool { return s.belongs(at) && s.Refused[at] == "" })
	slices.Sort(s.Programs)
}

// look adds what belongs to a file, or why no list can name it.
func (s *sight) look(at string) {
	l := s.list()
	err := l.add(at, at)
	if err == nil {
		err = l.checkWritable()
	} else {
		err = l.failed(at, err)
	}
	if err != nil {
		s.Refused[at] = reasonOf(err)
		return
	}
	for _, file := range l.files.Paths() {
		s.covered[file] = s.covered[file] || file != at
	}
	s.dirs = append(s.dirs, slices.Collect(maps.Keys(l.dirs))...)
}

func (s *sight) belongs(at string) bool {
	return s.covered[at] || slices.ContainsFunc(s.dirs, func(dir string) bool { return within(at, dir) })
}

// together checks what a list as a whole must have: interpreters and libraries.
func (s *sight) together() {
	l := s.list()
	for _, at := range s.Programs[:min(len(s.Programs), mostSeen)] {
		if s.Refused[at] == "" && l.add(at, at) != nil {
			return // it has changed meanwhile, and the start of the next run says how
		}
	}
	for _, check := range []func() error{l.checkScripts, l.checkMissing} {
		if list, refused := check().(*ListError); refused {
			s.Refused[list.Entry] = list.Problem
		}
	}
}

// reasonOf is an error without the path that it is about.
func reasonOf(err error) string {
	if list, known := err.(*ListError); known {
		return list.Problem
	}
	return err.Error()
}
