package learn

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// basePlaces are those of the base system that a list of reads has as a whole: a program and its
// libraries are read, and what else they read there changes with each update of them.
var basePlaces = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// mostReads bounds the entries that are written. Files of one folder become the folder until
// they fit.
const mostReads = 128

// reads sets the list of what may be read, or the reason why there is none. A list that the runs
// had stays as it is: its entries may be links, and observed paths have none. It comes after files and programs: their places decide.
func (l *learner) reads() {
	switch {
	case !l.seen.Reads || l.seen.Given.Has(settings.Read):
		return
	case slices.Contains(l.seen.Folders, "/"):
		l.unread = "the root folder itself was opened, and a list with that has all"
		return
	case l.doc.Text(settings.Root) != settings.RootReadOnly:
		l.unread = "the root is writable, so what the agent makes there would have to be in the list"
		return
	}
	spec := agent.Spec{Files: mountedFiles(l.doc), Seccomp: agent.Seccomp{Profile: l.doc.Text(settings.Seccomp)}}
	spec.Files.Read = l.listOfReads()
	if err := spec.ValidateRead(); err != nil {
		l.unread = agent.FailureOf(err).Message
		return
	}
	l.doc.SetList(settings.Read, spec.Files.Read)
}

// used are all files and folders that were seen.
func (l *learner) used() []string {
	o := l.seen
	return slices.Concat(o.Read, o.Executed, o.Programs, o.Written, o.Folders)
}

// mountedFiles are a document's mounts, as the agent's own places depend on them.
func mountedFiles(d policies.Document) (f agent.Files) {
	for _, v := range d.Values[settings.Volume] {
		f.Binds = append(f.Binds, agent.Bind{Target: targetOf(v), ReadOnly: strings.HasSuffix(v, ":ro")})
	}
	for _, t := range d.Values[settings.Tmpfs] {
		target, _, _ := strings.Cut(t, ":")
		f.Tmpfs = append(f.Tmpfs, agent.Tmpfs{Target: target})
	}
	return f
}

// listOfReads has single files, and folders as a whole where single files do not do. Each folder
// says why.
func (l *learner) listOfReads() []string {
	r := reading{own: mountedFiles(l.doc).OwnPlaces(), entries: map[string]string{}}
	r.whole("/sys", "whole: clove does not see what is read of it")
	for _, place := range basePlaces {
		if files := within(l.used(), place); len(files) > 0 {
			r.whole(place, fmt.Sprintf("whole: the base system; %d files and folders of it were opened", len(files)))
		}
	}
	for _, place := range slices.Concat(l.doc.Values[settings.Writable], writableMounts(l.doc)) {
		if len(within(l.used(), place)) > 0 {
			r.whole(place, "whole: the agent writes there")
		}
	}
	for _, program := range l.seen.Executed {
		if dir := path.Dir(program); path.Base(dir) == "bin" && !slices.ContainsFunc(append(mountsOf(l.doc), agent.WorkspaceDir), func(place string) bool { return isWithin(dir, place) }) {
			r.whole(path.Dir(dir), "whole: "+program+" was executed, and its own files are around it")
		}
	}
	for _, folder := range l.seen.Folders {
		r.whole(folder, "whole: the folder itself was opened, and in a list it stands for all that is in it")
	}
	for _, file := range slices.Concat(l.seen.Read, l.seen.Executed, l.seen.Programs, l.seen.Written) {
		r.file(file)
	}
	r.fold()
	for entry, why := range r.entries {
		if why != "" {
			l.why["files.read."+entry] = why
		}
	}
	return slices.Sorted(maps.Keys(r.entries))
}

// reading is a list on its way.
type reading struct {
	own     []string          // readable without a list
	entries map[string]string // with the reason of those that are folders as a whole
}

// has reports whether a place, or a whole folder around it, is in the list.
func (r reading) has(at string) bool {
	if _, known := r.entries[at]; known || slices.Contains(r.own, at) {
		return true
	}
	return r.around(at)
}

func (r reading) around(at string) bool {
	for at != "/" {
		at = path.Dir(at)
		if r.entries[at] != "" || slices.Contains(r.own, at) {
			return true
		}
	}
	return false
}

func (r reading) whole(place, why string) {
	if !r.has(place) {
		r.entries[place] = why
	}
}

// file adds a file, or its folder if a list takes the file's name for a pattern.
func (r reading) file(at string) {
	switch {
	case r.has(at):
	case strings.ContainsAny(at, `*?[\`):
		r.entries[path.Dir(at)] = "whole: no list can name " + at
	default:
		r.entries[at] = ""
	}
}

// fold has folders stand for the entries in them until few enough are left: first those that
// have the most.
func (r reading) fold() {
	for {
		folders, most := map[string]int{}, 0
		for entry := range r.entries {
			if r.around(entry) {
				delete(r.entries, entry)
			} else if folder := path.Dir(entry); folder != "/" {
				folders[folder]++
			}
		}
		if len(r.entries) <= mostReads || len(folders) == 0 {
			return
		}
		for _, n := range folders {
			most = max(most, n)
		}
		for folder, n := range folders {
			if n == most {
				r.entries[folder] = fmt.Sprintf("whole: %d files and folders of it were opened", n)
			}
		}
	}
}
