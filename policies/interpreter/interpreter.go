package interpreter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Interpreter is a program of the host that runs inside under the same path.
type Interpreter struct {
	Path string // absolute
	// Prefixes are the directories outside the base system that it consists
	// of; none for a program of the base system.
	Prefixes []string
	// Links are further names of prefixes, which a chain of symbolic links on
	// the way to the program uses.
	Links []agent.Bind
	// Bin goes first in PATH inside, so that the interpreter's tools are found.
	Bin string
}

// Finder finds interpreters as the caller's shell would. It resolves the shims of version
// managers itself: inside they could not find the version that they stand for.
type Finder struct {
	Host host.Host
	Dir  string // where the search for version files begins, absolute: the script's directory
}

// Search finds the first of names that is in PATH and can be shown inside. The error is of
// KindNotFound if PATH has none of them.
func (f Finder) Search(names ...string) (Interpreter, error) {
	var failure error
	for _, name := range names {
		for _, path := range f.candidates(name) {
			found, err := f.Follow(path)
			if err == nil {
				return found, nil
			}
			if failure == nil {
				failure = err // the next in PATH may do; if none does, the first failure is reported
			}
		}
	}
	if failure != nil {
		return Interpreter{}, failure
	}
	return Interpreter{}, &agent.Error{Kind: agent.KindNotFound, Step: "interpreter", Message: strings.Join(names, " or ") + " is not in PATH",
		Hint: "install it; sudo has a PATH of its own (secure_path): sudo env PATH=\"$PATH\" clove run … keeps yours"}
}

// candidates are the programs of that name in PATH, in its order. Relative entries are left
// out: root must not execute what lies in the working directory.
func (f Finder) candidates(name string) []string {
	var found []string
	path, _ := f.Host.Lookup("PATH")
	for _, dir := range filepath.SplitList(path) {
		if candidate := filepath.Join(dir, name); filepath.IsAbs(dir) && host.IsProgram(candidate) {
			found = append(found, candidate)
		}
	}
	return found
}

// Follow finds everything that the program at path needs to run inside.
func (f Finder) Follow(path string) (Interpreter, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Interpreter{}, agent.Failed("interpreter", err)
	}
	// Before anything is collected: a shim is a script in its manager's own folder, not an
	// installation.
	if manager, root, isShim := shimOf(real); isShim {
		chosen, err := f.version(manager, root, filepath.Base(path))
		if err != nil {
			return Interpreter{}, err
		}
		return f.Follow(chosen)
	}
	parts := collection{host: f.Host}
	// Links among the directories of path are resolved at once. The program's own name is
	// not: Python recognises a virtual environment by the path that it was called by.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	for _, name := range linkChain(path) {
		if err := parts.add(name); err != nil {
			return Interpreter{}, err
		}
	}
	// The environment has only links and packages. The standard library is in the
	// installation that it was made from.
	if home, isVirtual := virtualHome(path); isVirtual {
		if err := parts.add(filepath.Join(home, filepath.Base(path))); err != nil {
			return Interpreter{}, err
		}
	}
	found := Interpreter{Path: path, Prefixes: parts.outermost(), Links: parts.links}
	if len(found.Prefixes) > 0 {
		found.Bin = filepath.Dir(path)
	}
	return found, nil
}

// linkChain lists path and what its symbolic links lead to, in order. Each of them must
// exist inside for the chain to lead to the program. It ends, because path was resolved
// before.
func linkChain(path string) []string {
	chain := []string{path}
	for {
		target, err := os.Readlink(path)
		if err != nil {
			return chain
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
		chain = append(chain, path)
	}
}

// collection gathers the directories that an interpreter consists of.
type collection struct {
	host     host.Host
	prefixes []string
	links    []agent.Bind
}

// add adds the prefix of one program, unless the base system has it.
func (c *collection) add(program string) error {
	if c.host.InBase(program) {
		return nil
	}
	prefix, err := prefixOf(program)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(prefix)
	if err != nil {
		return agent.Failed("interpreter", err)
	}
	if !c.host.InBase(real) && !slices.Contains(c.prefixes, real) {
		c.prefixes = append(c.prefixes, real)
	}
	// The prefix is shown at its real path, and also at the path of the link that the
	// chain uses.
	link := agent.Bind{Source: real, Target: prefix, ReadOnly: true}
	if prefix != real && !slices.Contains(c.links, link) {
		c.links = append(c.links, link)
	}
	return nil
}

// outermost leaves out prefixes that lie in another one, which is shown with everything in
// it.
func (c *collection) outermost() []string {
	var outer []string
	for _, p := range c.prefixes {
		inner := slices.ContainsFunc(c.prefixes, func(other string) bool { return p != other && host.Within(p, other) })
		if !inner {
			outer = append(outer, p)
		}
	}
	return outer
}

// prefixOf is the directory that a program was installed into: the parent of its bin. It is
// refused if showing it would show more than an interpreter.
func prefixOf(program string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(program))
	refused := func(why string) error {
		return &agent.Error{Kind: agent.KindInvalid, Step: "interpreter", Message: fmt.Sprintf("cannot show %s inside: %s", program, why),
			Hint: "use one of the base system, a version manager's, or a virtual environment (--python)"}
	}
	switch {
	case filepath.Base(filepath.Dir(program)) != "bin":
		return "", refused("it is not in a directory called bin")
	case slices.Contains(host.SharedDirs, prefix) || isPersonal(prefix):
		return "", refused(prefix + " contains more than an interpreter")
	case !isInstallation(prefix):
		return "", refused(prefix + " is not the prefix of an interpreter")
	}
	return prefix, nil
}

// isPersonal recognises a home directory, and .local in it, by the files there: under sudo,
// HOME does not name the caller's.
func isPersonal(dir string) bool {
	return filepath.Base(dir) == ".local" || slices.ContainsFunc([]string{".ssh", ".profile", ".bashrc", ".config"}, func(name string) bool {
		return host.Exists(filepath.Join(dir, name))
	})
}

// isInstallation reports whether dir looks like an interpreter's prefix: libraries are
// beside bin, and conda keeps a folder of its own.
func isInstallation(dir string) bool {
	return IsVirtual(dir) || host.IsDirectory(filepath.Join(dir, "lib")) || host.IsDirectory(filepath.Join(dir, "conda-meta"))
}
