package resolve

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// Manifest is an agent's file that was read.
type Manifest struct {
	Written policies.Manifest
	Source  string // path of the file

	text  []byte
	dir   string // where its relative paths begin
	below string // of a team's agent: what is before its keys, as "agents.plan."
}

// IsManifest reports whether a name has the ending of a manifest.
func IsManifest(name string) bool { return slices.Contains(policyEndings, filepath.Ext(name)) }

// LoadManifest reads a manifest. An error names the file and the place in it.
func LoadManifest(path string, h host.Host) (*Manifest, error) {
	m := &Manifest{Source: path}
	full := h.Absolute(path)
	text, err := host.ReadBounded(full, policies.MostBytes)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("cannot read the manifest %q", path), Hint: "name an agent's file, as agent.yaml", Err: err}
	}
	m.text, m.dir = text, filepath.Dir(full)
	if m.Written, err = policies.ParseManifest(text); err != nil && policies.IsTeam(text) {
		err = invalid("", "clove up "+path, "it is a team")
	}
	if err != nil {
		return nil, m.wrong(err)
	}
	return m, nil
}

// Request lays what a command line asks for over the manifest. The command line has no script;
// its arguments come behind the manifest's.
func (m *Manifest) Request(asked Request, h host.Host) (Request, error) {
	values := absoluteValues(m.Written.Values, m.dir)
	digest, err := m.Digest(h)
	if err != nil {
		return asked, err
	}
	asked.Manifest = agent.Manifest{Name: m.Written.Name, SHA256: digest}
	if asked.Policy == "" {
		asked.Policy = m.extends()
	}
	asked.Args = slices.Concat(m.Written.Command, m.Written.Args, asked.Args)
	if m.Written.Script != "" {
		asked.Script = m.absolute(m.Written.Script)
	}
	variables := slices.Concat(values[settings.EnvironmentSet], values[settings.EnvironmentPass])
	delete(values, settings.EnvironmentSet)
	delete(values, settings.EnvironmentPass)
	values.Add(settings.Env, variables...)
	if m.Written.Home == policies.HomeKept {
		values.Set(settings.KeptHome, m.Written.Name)
	}
	asked.Values = over(asked.Values, values)
	return asked, nil
}

// over lays what was typed over a manifest's values. Both are the run's own, so those that a
// policy has apart from the run's are one list.
func over(typed, written settings.Values) settings.Values {
	all := typed.Ask(written)
	for i := range settings.All() {
		if s := &settings.All()[i]; s.Flags == settings.Apart {
			all.SetList(s.Name(), written[s.Name()])
			all.Add(s.Name(), typed[s.Name()]...)
		}
	}
	return all
}

func (m *Manifest) absolute(path string) string { return host.Host{Dir: m.dir}.Absolute(path) }

// Holds reports whether a folder of the host is the manifest's or below it. No folder is.
func (m *Manifest) Holds(folder string) bool {
	dir, err := filepath.EvalSymlinks(m.dir)
	return folder == "" || err == nil && host.Within(folder, dir)
}

// extends is the policy below. The path of one begins at the manifest.
func (m *Manifest) extends() string {
	if e := m.Written.Extends; strings.Contains(e, "/") || IsManifest(e) {
		return m.absolute(e)
	}
	return m.Written.Extends
}

// Mistake names the place in the file where a spec could not be built because of one of its
// values. A mistake in what was typed stays as it is.
func (m *Manifest) Mistake(err error, typed settings.Values) error {
	if err == nil {
		return nil
	}
	f := agent.FailureOf(err)
	step, _, _ := strings.Cut(strings.TrimPrefix(f.Step, "--"), " ")
	s := settings.Find(step)
	switch {
	case f.Step == "script":
		return m.at("script", err)
	case s == nil || typed.Has(s.Name()):
		return err
	case s.Name() == settings.Env:
		return m.at("environment", err)
	case !m.Written.Has(s.Name()):
		return err
	}
	return m.at(s.ManifestKey(), asDocument(err))
}

// at is an error about a key.
func (m *Manifest) at(key string, err error) error {
	f := agent.FailureOf(err)
	message := strings.TrimPrefix(f.Message, key+": ")
	key = m.below + key
	if place := document.PlaceOf(m.text, key); place != "" {
		key = place + ": " + key
	}
	return m.wrong(&agent.Error{Kind: agent.KindOf(err), Message: key + ": " + message, Hint: f.Hint})
}

func (m *Manifest) wrong(err error) error {
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Message: m.Source + ": " + f.Message, Hint: f.Hint}
}

// paths are the settings whose text is a path of the host, and of which a relative one begins
// at the document.
var paths = []string{settings.Rootfs, settings.Workspace, settings.EnvFile}

// absoluteValues makes paths of the host absolute: they begin at the document.
func absoluteValues(written settings.Values, dir string) settings.Values {
	from := host.Host{Dir: dir}
	v := maps.Clone(written)
	for _, name := range paths {
		v.SetList(name, each(v[name], from.Absolute))
	}
	v.SetList(settings.Volume, each(v[settings.Volume], func(text string) string {
		if source, rest, _ := strings.Cut(text, ":"); strings.HasPrefix(text, ".") {
			return from.Absolute(source) + ":" + rest
		}
		return text
	}))
	v.SetList(settings.Mount, each(v[settings.Mount], func(text string) string {
		options := strings.Split(text, ",")
		for i, option := range options {
			if key, source, _ := strings.Cut(option, "="); (key == "source" || key == "src") && strings.HasPrefix(source, ".") {
				options[i] = key + "=" + from.Absolute(source)
			}
		}
		return strings.Join(options, ",")
	}))
	v.SetList(settings.Python, each(v[settings.Python], func(text string) string {
		if strings.Contains(text, "/") {
			return from.Absolute(text)
		}
		return text
	}))
	v.SetList(settings.GitDir, each(v[settings.GitDir], func(text string) string {
		if text == agent.NoGitDir {
			return text
		}
		return from.Absolute(text)
	}))
	v.SetList(settings.Seccomp, each(v[settings.Seccomp], func(text string) string {
		if isFilterName(text) {
			return text
		}
		return from.Absolute(text)
	}))
	return v
}

// each changes the texts of a list. An absent list stays one.
func each(texts []string, change func(string) string) []string {
	if texts == nil {
		return nil
	}
	changed := make([]string, len(texts))
	for i, text := range texts {
		changed[i] = change(text)
	}
	return changed
}
