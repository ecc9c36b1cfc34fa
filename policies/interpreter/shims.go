package interpreter

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// versionManager is a program of pyenv's family, which keeps ROOT/versions/VERSION/bin, and
// in ROOT/shims a shell script for each program.
type versionManager struct {
	name     string // as it appears in ROOT
	variable string // chooses the version before any file
	file     string // chooses it for the directory that holds it
}

var versionManagers = []versionManager{
	{"pyenv", "PYENV_VERSION", ".python-version"},
	{"rbenv", "RBENV_VERSION", ".ruby-version"},
	{"nodenv", "NODENV_VERSION", ".node-version"},
	{"plenv", "PLENV_VERSION", ".perl-version"},
}

// shimOf reports whether a program is such a script, and of which manager. The manager's
// root may be anywhere ($PYENV_ROOT), so the layout decides.
func shimOf(program string) (manager versionManager, root string, isShim bool) {
	dir := filepath.Dir(program)
	root = filepath.Dir(dir)
	if filepath.Base(dir) != "shims" || !host.IsDirectory(filepath.Join(root, "versions")) {
		return manager, "", false
	}
	for _, m := range versionManagers {
		if strings.Contains(filepath.Base(root), m.name) {
			return m, root, true
		}
	}
	// An unusual root: its shims name their manager.
	text, _ := ReadHead(program)
	for _, m := range versionManagers {
		if strings.Contains(string(text), m.name) {
			return m, root, true
		}
	}
	return manager, "", false
}

// version returns the program that a shim would execute. The shim is not run to find out: it
// is a shell script of the caller's, and would run as root.
func (f Finder) version(m versionManager, root, program string) (string, error) {
	wanted, from := f.wantedVersions(m, root)
	for _, version := range wanted {
		dir, found := installed(filepath.Join(root, "versions"), strings.TrimPrefix(version, "python-"))
		if path := filepath.Join(dir, "bin", program); found && host.IsProgram(path) {
			return path, nil
		}
	}
	if len(wanted) == 0 {
		wanted, from = []string{"system"}, m.name
	}
	return "", &agent.Error{Kind: agent.KindNotFound, Step: "interpreter",
		Message: program + " is not in version " + strings.Join(wanted, ", ") + ", which " + from + " asks for",
		Hint:    "install that version with " + m.name + ", or choose another one with " + m.variable}
}

// wantedVersions reads what chooses the version, in the managers' own order: the variable,
// the nearest file above the script, the nearest above the caller's directory, the global
// file. from names the source for the error.
func (f Finder) wantedVersions(m versionManager, root string) (versions []string, from string) {
	if value, set := f.Host.Lookup(m.variable); set && value != "" {
		// pyenv takes several versions, of which the first that has the program counts.
		return strings.Split(value, ":"), m.variable
	}
	paths := slices.Concat(upward(f.Dir, m.file), upward(f.Host.Dir, m.file), []string{filepath.Join(root, "version")})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
				versions = append(versions, fields[0])
			}
		}
		if len(versions) > 0 {
			return versions, path
		}
	}
	return nil, ""
}

// upward lists the paths at which a file of that name may lie, from dir up to the root.
func upward(dir, name string) []string {
	var paths []string
	for {
		paths = append(paths, filepath.Join(dir, name))
		parent := filepath.Dir(dir)
		if parent == dir {
			return paths
		}
		dir = parent
	}
}

// installed finds the directory of a version: itself, or the newest that it is a prefix of,
// as "3.12" means the newest 3.12.x. A version comes from a file of the caller's: it must
// be a name, never a path.
func installed(versions, wanted string) (dir string, found bool) {
	if wanted == "" || strings.Contains(wanted, "/") || strings.HasPrefix(wanted, ".") {
		return "", false
	}
	// An exact name wins over newer versions that begin with it.
	if dir := filepath.Join(versions, wanted); host.IsDirectory(dir) {
		return dir, true
	}
	entries, err := os.ReadDir(versions)
	if err != nil {
		return "", false
	}
	var matches []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), wanted+".") {
			matches = append(matches, e.Name())
		}
	}
	if len(matches) == 0 {
		return "", false
	}
	return filepath.Join(versions, slices.MaxFunc(matches, compareVersions)), true
}

// compareVersions orders "3.9.1" before "3.12.0": numbers by their value, other parts as
// text.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, err := strconv.Atoi(x)
		n, nerr := strconv.Atoi(y)
		if err != nil || nerr != nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(m, n)
	})
}
