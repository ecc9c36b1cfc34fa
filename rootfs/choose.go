package rootfs

import "path"

// Chosen returns those changes that concern the paths inside, with everything below them, and the
// new directories that hold them. A rename out of a place that is deleted or replaced belongs to
// that, or what was renamed would be deleted. missing are the paths that nothing changed.
func Chosen(changes []Change, paths []string) (chosen []Change, missing []string) {
	s := &selection{changes: changes, taken: make([]bool, len(changes)), folders: map[string]int{}}
	for i, c := range changes {
		switch {
		case c.Kind == Renamed:
			s.renames = append(s.renames, i)
		case c.Kind != Deleted && c.Type == TypeDir:
			s.folders[c.Path] = i
		}
	}
	for _, at := range paths {
		found := false
		for i, c := range changes {
			if within(c.Path, at) || c.From != "" && within(c.From, at) {
				s.take(i)
				found = true
			}
		}
		if !found {
			missing = append(missing, at)
		}
	}
	for i, c := range changes {
		if s.taken[i] {
			chosen = append(chosen, c)
		}
	}
	return chosen, missing
}

// selection is what has been chosen of a list of changes.
type selection struct {
	changes []Change
	taken   []bool
	folders map[string]int // changes that make or change a directory, by path
	renames []int
}

// take chooses a change, and what it needs.
func (s *selection) take(i int) {
	if s.taken[i] {
		return
	}
	s.taken[i] = true
	c := s.changes[i]
	for up := path.Dir(c.Path); len(up) > 1; up = path.Dir(up) {
		if above, ok := s.folders[up]; ok {
			s.take(above)
		}
	}
	if c.Kind == Changed && c.Type == TypeDir && c.Was == "" {
		return // a directory that stays
	}
	for _, j := range s.renames {
		if within(s.changes[j].From, c.Path) {
			s.take(j)
		}
	}
}
