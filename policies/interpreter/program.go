package interpreter

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Program is a program that a user has installed, as it runs inside.
type Program struct {
	Path    string       // on the host, as it was found
	Command []string     // inside: its interpreter, if it is a script, and itself
	Binds   []agent.Bind // what of it appears inside, read-only
	Bin     string       // a directory for PATH inside, with what belongs to its interpreter; may be empty
}

// Inside, these directories hold what is shown of a user's program, and of its interpreter.
const (
	ProgramDir     = "/opt/clove/program"
	interpreterDir = "/opt/clove/interpreter"
)

// HomeDirs are where installers put programs into a home, for callers whose PATH does not have them,
// as sudo's does not.
var HomeDirs = []string{".cargo/bin", ".local/bin", "go/bin", "bin", ".bun/bin", ".deno/bin", ".npm-global/bin", ".yarn/bin"}

// launchers only start a program that is elsewhere, which they would not find inside.
var launchers = []string{"volta-shim", "mise", "rtx", "proto-shim", "asdf"}

// Program finds the program of that name where a user's shell would, then where installers put programs
// into a home, then in more directories. It is shown with what belongs to it, and not with the directory
// that it was found in, which holds other programs too. The error is of KindNotFound if there is none,
// and names why one that is there cannot be shown.
func (f Finder) Program(name string, more ...string) (Program, error) {
	var failure error
	candidates := f.candidates(name)
	for _, dir := range slices.Concat(f.homeDirs(), more) {
		if at := filepath.Join(dir, name); host.IsProgram(at) {
			candidates = append(candidates, at)
		}
	}
	for _, at := range candidates {
		found, err := f.show(at)
		if err == nil {
			return found, nil
		}
		if failure == nil {
			failure = err
		}
	}
	if failure != nil {
		return Program{}, failure
	}
	return Program{}, &agent.Error{Kind: agent.KindNotFound, Step: "program", Message: name + " is neither in PATH nor in your home",
		Hint: "install it; sudo has a PATH and a HOME of its own: sudo --preserve-env=HOME env PATH=\"$PATH\" clove run … keeps yours"}
}

// homeDirs are the directories of the caller's home in which programs may be, the newest Node.js of a version
// manager first.
func (f Finder) homeDirs() (dirs []string) {
	home, _ := f.Host.Lookup("HOME")
	if !filepath.IsAbs(home) {
		return nil
	}
	for _, dir := range append(slices.Clone(HomeDirs), ".npm-packages/bin", ".opencode/bin") {
		dirs = append(dirs, filepath.Join(home, dir))
	}
	for _, key := range []string{"npm_config_prefix", "NPM_CONFIG_PREFIX"} {
		if prefix, _ := f.Host.Lookup(key); filepath.IsAbs(prefix) {
			dirs = append(dirs, filepath.Join(prefix, "bin"))
		}
	}
	if prefix := npmPrefix(home); prefix != "" {
		dirs = append(dirs, filepath.Join(prefix, "bin"))
	}
	nvm, _ := f.Host.Lookup("NVM_DIR")
	if !filepath.IsAbs(nvm) {
		nvm = filepath.Join(home, ".nvm")
	}
	dirs = append(dirs, newestFirst(filepath.Join(nvm, "versions/node"), "bin")...)
	return append(dirs, newestFirst(filepath.Join(home, ".local/share/fnm/node-versions"), "installation/bin")...)
}

// newestFirst are the directories with this name in each version's.
func newestFirst(versions, name string) (dirs []string) {
	entries, _ := os.ReadDir(versions) // none if there is no such manager
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		return compareVersions(strings.TrimPrefix(b.Name(), "v"), strings.TrimPrefix(a.Name(), "v"))
	})
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(versions, e.Name(), name))
	}
	return dirs
}

// npmPrefix is the prefix that ~/.npmrc sets; empty: none.
func npmPrefix(home string) string {
	text, err := host.ReadBounded(filepath.Join(home, ".npmrc"), 64<<10)
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if value = strings.Trim(strings.TrimSpace(value), `"'`); strings.TrimSpace(key) == "prefix" {
			for _, name := range []string{"~", "${HOME}", "$HOME"} {
				if rest, is := strings.CutPrefix(value, name+"/"); is {
					value = filepath.Join(home, rest)
				}
			}
			if filepath.IsAbs(value) {
				return filepath.Clean(value)
			}
		}
	}
	return ""
}

// show says what of the program at this path appears inside.
func (f Finder) show(at string) (Program, error) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return Program{}, agent.Failed("program", err)
	}
	refused := func(why, hint string) (Program, error) {
		return Program{}, &agent.Error{Kind: agent.KindInvalid, Step: "program", Message: "cannot show " + at + " inside: " + why, Hint: hint}
	}
	if manager, root, isShim := shimOf(real); isShim {
		chosen, err := f.version(manager, root, filepath.Base(at))
		if err != nil {
			return Program{}, err
		}
		return f.show(chosen)
	}
	if slices.Contains(launchers, filepath.Base(real)) {
		return refused(real+" starts a program that is elsewhere", "put the program's own directory into PATH")
	}
	p := Program{Path: at}
	place := f.placeOf(real)
	head, err := ReadHead(real)
	if err != nil {
		return Program{}, agent.Failed("program", err)
	}
	line, isScript := head.Line()
	if !isScript {
		if machine, _ := head.Machine(); machine != f.Host.Machine {
			return refused("it is no program for this machine", "install it for this machine")
		}
		p.Command = []string{p.shown(place, real, ProgramDir)}
		return p, nil
	}
	interpreter, err := f.lineInterpreter(line, at)
	if err != nil {
		return Program{}, err
	}
	prefixes := interpreter.Prefixes
	inPrefix := slices.IndexFunc(prefixes, func(prefix string) bool { return host.Within(real, prefix) })
	// A package's author wrote the line: it must not choose which directory of the user's is shown.
	switch {
	case inPrefix >= 0:
		place = prefixes[inPrefix]
	case len(prefixes) > 0 && (!line.ViaPATH || !isLanguage(line.Program)):
		return refused("its first line names "+interpreter.Path+", which belongs to another installation", "install an interpreter that is in the base system")
	case place == real:
		return refused("it is a script that may start any other program", "name the program that it starts, or put its directory into PATH")
	}
	program := interpreter.Path
	if len(prefixes) > 0 {
		// A virtual environment's Python of the base system is known by its name in the environment.
		file, err := filepath.EvalSymlinks(program)
		if err != nil {
			return Program{}, agent.Failed("program", err)
		}
		if !f.Host.InBase(file) {
			program = file
		}
		if len(prefixes) > 1 || !host.Within(program, prefixes[0]) {
			return refused("its interpreter "+interpreter.Path+" is in several places", "use one of the base system")
		}
		program = p.shown(prefixes[0], program, interpreterDir)
		p.Bin = path.Dir(program)
	}
	p.Command = slices.Concat([]string{program}, line.Argument, []string{p.shown(place, real, ProgramDir)})
	return p, nil
}

// isLanguage reports whether a name is that of an interpreter of packages, and not of any program in PATH.
func isLanguage(name string) bool {
	return IsPython(name) || slices.Contains([]string{"node", "nodejs", "bun", "deno", "ruby", "perl"}, name)
}

// lineInterpreter finds the interpreter of a script's first line: beside the script first, as a version
// manager has them, where the line leaves it to PATH.
func (f Finder) lineInterpreter(line Line, at string) (Interpreter, error) {
	if !line.ViaPATH {
		return f.Follow(line.Program)
	}
	if beside := filepath.Join(filepath.Dir(at), line.Program); host.IsProgram(beside) {
		return f.Follow(beside)
	}
	return f.Search(line.Program)
}

// shown shows what a file at a canonical path belongs to below dir, once, and returns the file's path inside.
func (p *Program) shown(place, file, dir string) string {
	if place == "" {
		return file // of the base system
	}
	bind := agent.Bind{Source: place, Target: path.Join(dir, filepath.Base(place)), ReadOnly: true}
	if at := slices.IndexFunc(p.Binds, func(b agent.Bind) bool { return b.Source == place }); at >= 0 {
		bind = p.Binds[at]
	} else {
		p.Binds = append(p.Binds, bind)
	}
	return path.Join(bind.Target, file[len(place):])
}

// placeOf is the directory that holds what a program needs: the package of npm's that it is in, with the
// packages that this depends on; else the program alone. Empty: the base system has it.
func (f Finder) placeOf(real string) string {
	if f.Host.InBase(real) {
		return ""
	}
	const modules = "/node_modules/"
	before, within, found := strings.Cut(real, modules)
	if !found {
		return real
	}
	// npm puts what a package of lib/node_modules depends on into the package; others put it beside.
	if filepath.Base(before) == "lib" {
		parts := strings.SplitN(within, "/", 3)
		if strings.HasPrefix(within, "@") && len(parts) == 3 {
			return before + modules + parts[0] + "/" + parts[1]
		}
		return before + modules + parts[0]
	}
	return before + strings.TrimSuffix(modules, "/")
}
