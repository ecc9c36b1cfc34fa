package agent

import (
	"slices"
	"strings"
)

// WritablePlaces are the places that stay writable under a read-only root, and that
// Files.Writable may name.
var WritablePlaces = []string{WorkspaceDir, "/tmp", "/var/tmp", "/home/agent", "/dev/shm"}

// StaysWritable reports whether clove leaves place, a directory inside, writable. A mount
// that the user requested there is as requested, whatever the answer.
func (f Files) StaysWritable(place string) bool {
	return !f.ReadOnly || len(f.Writable) == 0 || slices.Contains(f.Writable, place)
}

// ValidateWritable checks Writable. An empty list is not the same as none: its author wants
// no writable place, and an absent list means all of them.
func (f Files) ValidateWritable() error {
	const field = "files.writable"
	switch {
	case f.Writable == nil:
		return nil
	case len(f.Writable) == 0:
		return wrong(field, "name at least one of "+strings.Join(WritablePlaces, ", ")+", or omit the list, and all stay writable", "the list of writable places is empty")
	case !f.ReadOnly:
		return wrong(field, "add read_only, or omit the list", "a list of writable places has no effect without a read-only root")
	}
	for i, place := range f.Writable {
		if !slices.Contains(WritablePlaces, place) {
			return wrong(field, "use "+strings.Join(WritablePlaces, ", "), "%.64q is not a place that can stay writable", place)
		}
		if slices.Contains(f.Writable[:i], place) {
			return wrong(field, "name it once", "%s is in the list twice", place)
		}
	}
	return nil
}

func checkWritable(s Spec) error { return s.Files.ValidateWritable() }

// ValidateLandlock checks Files.Landlock. Whether the host has it is looked at by the start.
func (s Spec) ValidateLandlock() error {
	const field = "files.landlock"
	switch {
	case s.Files.Landlock != "" && s.Files.Landlock != LandlockRequired:
		return wrong(field, "write required, or omit the key", "%.64q is not required", s.Files.Landlock)
	case s.Files.Landlock != "" && s.Seccomp.Profile == SeccompUnconfined:
		return wrong(field, "use the filter standard, strict or minimal, or omit the key", "an agent without a filter may mount, and Landlock would refuse that")
	}
	return nil
}

// agentWrites reports whether the agent can make file, a path inside. A bind counts as
// read-only, because a write there is a write on the host.
func (f Files) agentWrites(file string) bool {
	within := func(dir string) bool { return strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") }
	if slices.ContainsFunc(f.Tmpfs, func(t Tmpfs) bool { return within(t.Target) }) {
		return true
	}
	return !f.ReadOnly || slices.ContainsFunc(WritablePlaces, func(place string) bool { return within(place) && f.StaysWritable(place) })
}
