package rootfs

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// executes reports whether the list has a real path.
func (l *list) executes(real string) bool {
	return slices.Contains(l.files.Paths(), real) || l.inDir(real)
}

func (l *list) inDir(real string) bool {
	for dir := range l.dirs {
		if within(real, dir) {
			return true
		}
	}
	return false
}

// checkScripts requires the interpreter of each script. With env(1) it is the next word.
func (l *list) checkScripts() error {
	for _, script := range slices.Sorted(maps.Keys(l.scripts)) {
		program, argument := l.scripts[script][0], l.scripts[script][1]
		real, _, err := l.view.resolve(program)
		if err != nil || !l.executes(real) {
			return &ListError{script, "its interpreter " + program + " is not in the list", "add " + program + " to the list"}
		}
		if path.Base(program) != "env" {
			continue
		}
		words := strings.FieldsFunc(argument, func(c rune) bool { return c == ' ' || c == '\t' })
		if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") {
			continue // env decides, and what it executes must be in the list anyway
		}
		if err := l.checkProgram(script, words[0]); err != nil {
			return err
		}
	}
	return nil
}

// checkMissing lets a library be missing that the list itself has: its user knows a place
// that the loader is told at run time.
func (l *list) checkMissing() error {
	missing := l.files.Missing()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		by := missing[name]
		has := slices.ContainsFunc(l.files.Paths(), func(p string) bool { return path.Base(p) == path.Base(name) })
		if !has && !l.inDir(by) && !l.names[path.Base(name)] {
			return &ListError{by, "it needs " + name + ", which is nowhere inside", "install it, or add the folder that has it"}
		}
	}
	return nil
}

// checkWritable refuses what the agent may change, also by another way to the same file.
func (l *list) checkWritable() error {
	for _, e := range l.operations() {
		if l.view.writable(e.Path) {
			return writableError(e.Path)
		}
		for _, o := range l.view.plan.operations {
			if target, mounts := targetOf(o); e.Dir && mounts && within(target, e.Path) && l.view.writable(target) {
				return &ListError{e.Path, "the agent can write to " + target + " in it", "name the folders beside " + target}
			}
		}
		if err := l.checkBinds(e); err != nil {
			return err
		}
	}
	return nil
}

func writableError(at string) error {
	return &ListError{at, "the agent can write there, and so execute what it likes",
		"name a program of the base system or of a read-only volume, or leave the place out of files.writable"}
}

// checkBinds refuses a writable bind of the host's directory that a program comes from.
func (l *list) checkBinds(e executeOp) error {
	_, n, err := l.view.resolve(e.Path)
	if err != nil {
		return l.failed(e.Path, err)
	}
	for i, bind := range l.view.plan.cfg.Binds {
		source := l.view.plan.hostInfo.Binds[i].Path
		if !bind.ReadOnly && (within(n.Host, source) || e.Dir && within(source, n.Host)) {
			return &ListError{e.Path, "it is the host's " + n.Host + ", which the agent changes at " + bind.Target,
				"show " + source + " read-only: -v " + source + ":" + bind.Target + ":ro"}
		}
	}
	return nil
}

// checkCommand requires that the agent's own program can be executed.
func (l *list) checkCommand() error {
	if l.view.plan.cfg.Command.Name == "" {
		return nil
	}
	return l.checkProgram(l.view.plan.cfg.Command.Name, l.view.plan.cfg.Command.Name)
}

// checkProgram looks a name up as execvp(3) does. One that is nowhere is left to the start,
// which says so.
func (l *list) checkProgram(by, name string) error {
	exists := ""
	for _, at := range l.view.plan.cfg.Command.places(name) {
		real, n, err := l.view.resolve(at)
		if err != nil || n.Kind != kindFile {
			continue
		}
		if l.executes(real) {
			return nil
		}
		if exists == "" {
			exists = at
		}
	}
	switch {
	case exists == "":
		return nil
	case l.view.writable(exists):
		return writableError(exists)
	}
	problem := "it is not in the list of programs that may be executed"
	if by != name {
		problem = name + " is not in the list of programs that may be executed"
	}
	return &ListError{by, problem, "add " + exists + " to the list"}
}

// places are where execvp(3) looks for a program.
func (c Command) places(name string) (places []string) {
	switch {
	case path.IsAbs(name):
		return []string{path.Clean(name)}
	case strings.Contains(name, "/"):
		return []string{path.Join(c.Dir, name)}
	}
	for _, dir := range c.Path {
		places = append(places, path.Join("/", dir, name))
	}
	return places
}
