package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// interpreter is a program of the host's that runs inside under the same path.
type interpreter struct {
	Path string
	// Prefixes are the directories outside the base system that it consists
	// of; none for a program of the base system.
	Prefixes []string
	// Links are further names of prefixes, which a chain of symbolic links on
	// the way to the program uses.
	Links []agent.Bind
	// Bin goes first in PATH inside, so that the interpreter's tools are found.
	Bin string
}

// finder finds interpreters as the caller's shell would, and sees through
// version managers, which are shell scripts that look outside the sandbox.
type finder struct {
	host host
	dir  string // where the search for version files begins
}

// search looks for the first of names that PATH has, and follows it.
func (f finder) search(names ...string) (interpreter, error) {
	var failure error
	for _, name := range names {
		for _, path := range f.candidates(name) {
			found, err := f.follow(path)
			if err == nil {
				return found, nil
			}
			if failure == nil {
				failure = err // the next in PATH may do; the first one's trouble is the one to tell
			}
		}
	}
	if failure != nil {
		return interpreter{}, failure
	}
	return interpreter{}, &agent.Error{Kind: agent.KindNotFound, Step: "interpreter", Message: strings.Join(names, " or ") + " is not in PATH",
		Hint: "install it; sudo has a PATH of its own (secure_path): sudo env PATH=\"$PATH\" clove run … keeps yours"}
}

// candidates are the programs of that name in PATH. Relative entries are left
// out: root must not execute what lies in the working directory.
func (f finder) candidates(name string) []string {
	var found []string
	path, _ := f.host.lookup("PATH")
	for _, dir := range filepath.SplitList(path) {
		if candidate := filepath.Join(dir, name); filepath.IsAbs(dir) && isProgram(candidate) {
			found = append(found, candidate)
		}
	}
	return found
}

// follow finds everything that the program at path needs to run inside.
func (f finder) follow(path string) (interpreter, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return interpreter{}, agent.Failed("interpreter", err)
	}
	if manager, root, isShim := shimOf(real); isShim {
		chosen, err := f.version(manager, root, filepath.Base(path))
		if err != nil {
			return interpreter{}, err
		}
		return f.follow(chosen)
	}
	parts := collection{host: f.host}
	// Links among the directories of path are resolved at once; its own name is
	// not: a virtual environment is known by it.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	for _, name := range linkChain(path) {
		if err := parts.add(name); err != nil {
			return interpreter{}, err
		}
	}
	if home, isVirtual := virtualHome(path); isVirtual {
		if err := parts.add(filepath.Join(home, filepath.Base(path))); err != nil {
			return interpreter{}, err
		}
	}
	found := interpreter{Path: path, Prefixes: parts.outermost(), Links: parts.links}
	if len(found.Prefixes) > 0 {
		found.Bin = filepath.Dir(path)
	}
	return found, nil
}

// linkChain lists path and what its symbolic links lead to, in order. The
// chain is finite: path was resolved before.
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
	host     host
	prefixes []string
	links    []agent.Bind
}

// add adds the prefix of one program, unless the base system has it.
func (c *collection) add(program string) error {
	if c.host.inBase(program) {
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
	if !c.host.inBase(real) && !slices.Contains(c.prefixes, real) {
		c.prefixes = append(c.prefixes, real)
	}
	link := agent.Bind{Source: real, Target: prefix, ReadOnly: true}
	if prefix != real && !slices.Contains(c.links, link) {
		c.links = append(c.links, link)
	}
	return nil
}

// outermost leaves out prefixes that lie in another one.
func (c *collection) outermost() []string {
	var outer []string
	for _, p := range c.prefixes {
		inner := slices.ContainsFunc(c.prefixes, func(other string) bool { return p != other && within(p, other) })
		if !inner {
			outer = append(outer, p)
		}
	}
	return outer
}

// prefixOf is the directory that a program was installed into.
func prefixOf(program string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(program))
	refused := func(why string) error {
		return &agent.Error{Kind: agent.KindInvalid, Step: "interpreter", Message: fmt.Sprintf("cannot show %s inside: %s", program, why),
			Hint: "use one of the base system, a version manager's, or a virtual environment (--" + flagPython + ")"}
	}
	switch {
	case filepath.Base(filepath.Dir(program)) != "bin":
		return "", refused("it is not in a directory called bin")
	case slices.Contains(sharedDirs, prefix) || isPersonal(prefix):
		return "", refused(prefix + " holds more than an interpreter")
	case !isInstallation(prefix):
		return "", refused(prefix + " is not the prefix of an interpreter")
	}
	return prefix, nil
}

// isPersonal tells a home directory, and the part of it that holds the data of
// all programs, by what lies in it: under sudo, HOME says nothing.
func isPersonal(dir string) bool {
	return filepath.Base(dir) == ".local" || slices.ContainsFunc([]string{".ssh", ".profile", ".bashrc", ".config"}, func(name string) bool {
		return exists(filepath.Join(dir, name))
	})
}

// isInstallation: interpreters keep their libraries beside bin.
func isInstallation(dir string) bool {
	return exists(filepath.Join(dir, virtualConfig)) || isDirectory(filepath.Join(dir, "lib")) || isDirectory(filepath.Join(dir, "conda-meta"))
}
