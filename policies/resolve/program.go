package resolve

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/settings"
)

// ownProgram shows a program of the caller's. In a root of the caller's own it is looked for there.
func (b *builder) ownProgram() error {
	if b.foreignRoot() {
		b.spec.Command = slices.Concat([]string{b.asked.Program}, b.asked.Args)
		return nil
	}
	found, err := FindProgram(b.asked.Program, b.asked.Installed, b.host)
	if err != nil {
		return err
	}
	b.spec.Command = slices.Concat(found.Command, b.asked.Args)
	b.spec.Files.Binds = append(b.spec.Files.Binds, found.Binds...)
	if found.Bin != "" {
		b.path = append(b.path, found.Bin)
	}
	return nil
}

// FindProgram finds a program of the caller's, and last in the folder that a package was installed in; empty:
// there is none. A sandbox has written that folder: a link that leads out of it is no program.
func FindProgram(name, installed string, h host.Host) (interpreter.Program, error) {
	f := interpreter.Finder{Host: h, Dir: h.Dir}
	if installed == "" {
		return f.Program(name)
	}
	programs := filepath.Join(installed, "node_modules/.bin") // where npm puts them
	if real, err := filepath.EvalSymlinks(filepath.Join(programs, name)); err != nil || !within(real, installed) {
		return f.Program(name)
	}
	return f.Program(name, programs)
}

// within reports whether a canonical path lies in a directory, which links may lead to.
func within(real, dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	return err == nil && host.Within(real, dir)
}

// Installed is the folder that the manifest's package is installed in for the caller, whether or not it is
// there; empty: the manifest has none, or the caller has no home.
func (m *Manifest) Installed(h host.Host) string {
	p := m.Written.Package()
	data, _ := h.Lookup("XDG_DATA_HOME")
	if home, _ := h.Lookup("HOME"); !filepath.IsAbs(data) && filepath.IsAbs(home) {
		data = filepath.Join(home, ".local/share")
	}
	if p == (policies.Package{}) || !filepath.IsAbs(data) {
		return ""
	}
	return filepath.Join(data, "clove/programs", strings.ReplaceAll(p.Name, "/", "+")+"@"+p.Version)
}

// prepareProgram says where else the program may be, shows the caller's folder if the manifest names none,
// and lets the program reach its own servers where the run has no model of clove's.
func (m *Manifest) prepareProgram(asked *Request, values *settings.Values, h host.Host) error {
	asked.Installed = m.Installed(h)
	if !asked.Has(settings.Model) && !values.Has(settings.Model) {
		values.Set(settings.ModelSetup, "")
		values.Add(settings.Allow, m.Written.Login...)
	} else {
		setUpClient(asked, values)
	}
	if asked.Has(settings.Workspace) || values.Has(settings.Workspace) {
		return nil
	}
	return asked.ShowFolder(h)
}

// setUpClient sets the program up for the first model that the run names, without a file. A client that is
// not known, or a run that names patterns alone, is refused where the spec is checked.
func setUpClient(asked *Request, values *settings.Values) {
	client := cmp.Or(asked.Text(settings.ModelSetup), values.Text(settings.ModelSetup))
	for _, text := range slices.Concat((*values)[settings.Model], asked.Values[settings.Model]) {
		model := agent.NamedModel(text)
		if setup, known := agent.ModelClientOf(client, model); known && model != "" {
			asked.Set(settings.ModelSetup, "")
			values.Set(settings.ModelSetup, "")
			asked.Args = slices.Concat(setup.Args, asked.Args)
			values.SetList(settings.Env, slices.Concat(setup.Env, (*values)[settings.Env]))
			return
		}
	}
}

// ShowFolder makes the caller's folder the workspace. A home is not shown unless it is named: it holds
// keys, and everything else of its user.
func (r *Request) ShowFolder(h host.Host) error {
	dir, err := filepath.EvalSymlinks(h.Dir)
	if err != nil {
		return agent.Failed("--"+settings.Workspace, err)
	}
	home, _ := h.Lookup("HOME")
	if real, err := filepath.EvalSymlinks(home); err == nil && host.Within(real, dir) || slices.ContainsFunc(keptInHomes, func(name string) bool { return host.Exists(filepath.Join(dir, name)) }) {
		return invalid(settings.Workspace, "cd to a project first, or write --workspace . to show all of it", "%s is a home or holds one, and the agent would see what is in it", dir)
	}
	if r.Values == nil {
		r.Values = settings.Values{}
	}
	r.Set(settings.Workspace, ".")
	return nil
}

// keptInHomes are in a home, and in no project.
var keptInHomes = []string{".ssh", ".gnupg", ".bash_history"}
