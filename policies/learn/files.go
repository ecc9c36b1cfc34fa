package learn

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

const shmDir = "/dev/shm"

// wrote reports whether something at or below a place was written.
func (o Observation) wrote(place string) bool { return len(within(o.Written, place)) > 0 }

// within are the paths at or below a place.
func within(paths []string, place string) (some []string) {
	for _, file := range paths {
		if isWithin(file, place) {
			some = append(some, file)
		}
	}
	return some
}

func isWithin(file, place string) bool {
	return file == place || strings.HasPrefix(file, strings.TrimSuffix(place, "/")+"/")
}

// mountsOf are the targets of a document's volumes and memory file systems: files
// there are no part of the root.
func mountsOf(d policies.Document) (targets []string) {
	for _, v := range d.Values[settings.Volume] {
		targets = append(targets, targetOf(v))
	}
	for _, t := range d.Values[settings.Tmpfs] {
		target, _, _ := strings.Cut(t, ":")
		targets = append(targets, target)
	}
	return targets
}

// targetOf is where a volume appears.
func targetOf(volume string) string {
	parts := strings.Split(strings.TrimSuffix(volume, ":ro"), ":")
	return path.Clean(parts[len(parts)-1])
}

// base are the paths that were written outside of every place that can stay writable.
func (o Observation) base() []string {
	elsewhere := slices.Concat(agent.WritablePlaces, mountsOf(o.Given), []string{"/dev", "/proc", "/sys"})
	return slices.DeleteFunc(slices.Clone(o.Written), func(file string) bool {
		return slices.ContainsFunc(elsewhere, func(place string) bool { return isWithin(file, place) })
	})
}

// files narrows what can be written: the root to read-only, and the places to those that were
// written.
func (o Observation) files(d *policies.Document, why map[string]string) {
	given := filesOf(o.Given)
	if base := o.base(); len(base) > 0 && !given.ReadOnly {
		d.Set(settings.Root, settings.RootWritable)
		why["files.root"] = "written outside of the places that can stay writable: " + examples(base)
		return
	}
	d.Set(settings.Root, settings.RootReadOnly)
	d.Set(settings.Writable, "")
	why["files.root"], why["files.writable"] = "nothing of the base system was written", ""
	for _, place := range agent.WritablePlaces {
		if paths := within(o.Written, place); len(paths) > 0 && given.StaysWritable(place) {
			d.Add(settings.Writable, place)
			why["files.writable."+place] = "the whole place, because there is no smaller one; written were " + examples(paths)
		}
	}
	if d.Has(settings.Writable) {
		return
	}
	for _, place := range []string{"/tmp", shmDir, "/var/tmp", "/home/agent", agent.WorkspaceDir} {
		if given.StaysWritable(place) {
			d.SetList(settings.Writable, []string{place})
			why["files.writable."+place] = "nothing was written; one place always stays writable"
			return
		}
	}
}

// examples are the first of some paths, and how many there are.
func examples(paths []string) string {
	const few = 3
	shown := slices.Clone(paths[:min(few, len(paths))])
	text := strings.Join(shown, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// volumes says of each volume what the runs did there. Its mode stays: a name that is removed
// in it is not seen.
func (o Observation) volumes(why map[string]string) {
	for _, v := range o.Given.Values[settings.Volume] {
		target := targetOf(v)
		written, read := within(o.Written, target), within(slices.Concat(o.Read, o.Executed), target)
		switch {
		case len(written) > 0:
			why["files.volumes."+v] = "written were " + examples(written)
		case len(read) > 0 && !strings.HasSuffix(v, ":ro"):
			why["files.volumes."+v] = "no file was written: " + v + ":ro may be enough"
		case len(read) == 0:
			why["files.volumes."+v] = "no file in it was opened: it may not be needed"
		}
	}
}
