package rootfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs/linked"
)

// Readable resolves a list of the only files and directories that an agent may read: their real
// paths inside. own can be read anyway. It requires that the agent's program, and whatever has
// to be executed, is among them: a file that cannot be read cannot be executed.
func (p Plan) Readable(entries, own []string) (found []string, err error) {
	err = rightsOf(p.cfg.User, nsthread.StartAs, func() (err error) {
		v := newPreview(p)
		r := &readable{view: v, own: own, files: linked.NewSet(v)}
		found, err = r.read(entries)
		return err
	})
	return found, err
}

// readable is a list while it is read.
type readable struct {
	view  preview
	own   []string
	found []string
	files *linked.Set
}

func (r *readable) read(entries []string) ([]string, error) {
	for _, e := range entries {
		real, err := r.entry(e)
		if err != nil {
			return nil, err
		}
		r.found = append(r.found, real)
	}
	for _, e := range r.view.plan.hostInfo.Execute {
		if !r.has(e.Path) {
			return nil, r.left(e.Path, "it belongs to the list of programs that may be executed")
		}
	}
	for _, prefix := range r.view.plan.hostInfo.Prefixes {
		if !r.has(prefix.Path) {
			return nil, r.left(prefix.Path, "the agent's interpreter is there")
		}
	}
	return r.found, r.command()
}

// entry follows the links of one entry. Only those of the base system are followed: the agent
// for whom the list is may have made another one.
func (r *readable) entry(e string) (string, error) {
	top, rest, _ := strings.Cut(strings.TrimPrefix(e, "/"), "/")
	at := e
	if own := r.view.entries["/"+top]; own.Kind == kindLink {
		at = path.Join("/", own.Data, rest)
	}
	if within(at, "/sys") { // what is there is not in the plan
		return at, nil
	}
	real, n, err := r.view.resolve(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && n.Kind == "":
		return "", &ListError{e, "it does not exist inside", "check the path; it is one inside, of the base system, the workspace, a volume or --rootfs"}
	case err != nil:
		return "", &ListError{e, err.Error(), "name a file or folder that exists inside"}
	case n.Planted:
		return "", &ListError{e, "a link leads from there to " + real, "name " + real + " itself"}
	}
	return real, nil
}

func (r *readable) has(real string) bool {
	return slices.ContainsFunc(slices.Concat(r.found, r.own), func(dir string) bool { return within(real, dir) })
}

// left is the error for something that has to be read and is in no entry.
func (r *readable) left(at, why string) error {
	top := at
	for _, dir := range append(slices.Clone(baseDirs), mergeDirs...) {
		if within(at, dir) {
			top = dir
		}
	}
	return &ListError{at, why + ", and is not in the list of what may be read", "add " + top + " to the list"}
}

// command requires the agent's own program. One that is nowhere is left to the start.
func (r *readable) command() error {
	name := r.view.plan.cfg.Command.Name
	if name == "" {
		return nil
	}
	return r.program(name, "it is the agent's program", 1)
}

// program requires a program with its loader and libraries, and those of a script's interpreter.
func (r *readable) program(name, why string, deeper int) error {
	for _, at := range r.view.plan.cfg.Command.places(name) {
		real, n, err := r.view.resolve(at)
		if err != nil || n.Kind != kindFile {
			continue
		}
		if !r.has(real) {
			return r.left(real, why)
		}
		if _, err = r.files.Add(real); err != nil {
			return nil // it is no program: the start says so
		}
		for _, file := range r.files.Paths() {
			if !r.has(file) {
				return r.left(file, real+" needs it")
			}
		}
		if interpreter, _, is := r.files.Script(real); is && deeper > 0 {
			return r.program(interpreter, real+" is a script for it", deeper-1)
		}
		return nil
	}
	return nil
}

// Changing is the place in which the agent may put something else where a path is, if there is one.
// A path that is such a place itself stays what it is: no process moves a mount.
func (p Plan) Changing(at string) string {
	for _, place := range p.Writable() {
		if at != place && within(at, place) {
			return place
		}
	}
	return ""
}
