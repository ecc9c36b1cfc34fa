package resolve

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// Manifest is an agent's file that was read.
type Manifest struct {
	Written policies.Manifest
	Source  string // path of the file
	// Instructions are those of the manifest, or of the file that it names.
	Instructions string

	// Children are the manifests that Task.Spawn names.
	Children []*Manifest

	text  []byte
	dir   string // where its relative paths begin
	below string // of a team's agent: what is before its keys, as "agents.plan."
}

// IsManifest reports whether a text has the ending of a manifest.
func IsManifest(text string) bool { return slices.Contains(policyEndings, filepath.Ext(text)) }

// NamesManifest reports whether a word of a command line means a manifest: a path with its ending, or the
// name of an agent that this host has.
func NamesManifest(word string, h host.Host) bool {
	_, _, found := agentNamed(word, h)
	return found || IsManifest(word)
}

// LoadManifest reads the manifest that a word of a command line means. An error names the file and the
// place in it.
func LoadManifest(word string, h host.Host) (*Manifest, error) { return loadManifest(word, h, 0) }

// loadManifest is LoadManifest for one that is so many levels below.
func loadManifest(word string, h host.Host, level int) (*Manifest, error) {
	path, text, named := agentNamed(word, h)
	m := &Manifest{Source: path, text: text}
	if !named {
		m.Source = word
		path = h.Absolute(word)
	}
	var err error
	if m.text == nil {
		if m.text, err = host.ReadBounded(path, policies.MostBytes); err != nil {
			return nil, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("cannot read the manifest %q", m.Source), Hint: "name an agent's file, as agent.yaml; `clove agents` lists those that have a name", Err: err}
		}
	}
	m.dir = filepath.Dir(path)
	if m.Written, err = policies.ParseManifest(m.text); err == nil && named && m.Written.Name != word {
		err = invalid("", "rename the file, or write name: "+word, "it has the name %s", m.Written.Name)
	}
	if err != nil && policies.IsTeam(m.text) {
		err = invalid("", "clove up "+word, "it is a team")
	}
	if err == nil && !named && m.Written.Home == policies.HomeKept {
		if at, _, is := agentNamed(m.Written.Name, h); is && at != path {
			err = invalid("", "choose another name; clove run "+m.Written.Name+" is that agent", "name: %s is an agent of this host, whose kept home this file would have", m.Written.Name)
		}
	}
	if err != nil {
		return nil, m.wrong(err)
	}
	if err := m.readOrder(); err != nil {
		return nil, err
	}
	return m, m.readChildren(h, level)
}

// readChildren reads the manifests of agents that it may start. One that starts itself has a grant in
// place of that.
func (m *Manifest) readChildren(h host.Host, level int) error {
	for _, word := range m.Written.Spawn {
		if level == agent.SpawnDepthMost {
			return tooDeep{invalid("", `an agent that starts itself has grants: ["spawn:NAME"]`, "%s is %d levels below, or a circle leads to it", word, level+1)}
		}
		if IsManifest(word) {
			word = m.absolute(word)
		}
		child, err := loadManifest(word, h, level+1)
		if err == nil && slices.ContainsFunc(m.Children, func(other *Manifest) bool { return other.Written.Name == child.Written.Name }) {
			err = invalid("", "name each once", "there are two agents %s", child.Written.Name)
		}
		if errors.As(err, new(tooDeep)) && level > 0 {
			return err
		}
		if err != nil {
			return m.at("spawn", err)
		}
		m.Children = append(m.Children, child)
	}
	return nil
}

// tooDeep is about the last level. Of the files that lead to it only the first is named: in a circle
// they are the same again and again.
type tooDeep struct{ error }

func (e tooDeep) Unwrap() error { return e.error }

// readOrder checks what a model is told, and reads its instructions.
func (m *Manifest) readOrder() error {
	if w := m.Written; w.Model != "" {
		if err := (order.Order{Model: w.Model, Chat: true, Iterations: w.MaxIterations, Context: w.Context}).Check(); err != nil {
			return m.wrong(invalid("", "write another number, or omit the key", "%s", err))
		}
	}
	m.Instructions = m.Written.Instructions
	if m.Written.InstructionsFile != "" {
		return m.readInstructions()
	}
	return nil
}

// instructionsMost is what a file of instructions may have, in bytes: they are one argument of the
// agent's command, of which the kernel takes 128 KiB.
const instructionsMost = 64 << 10

func (m *Manifest) readInstructions() error {
	text, err := host.ReadBounded(m.absolute(m.Written.InstructionsFile), instructionsMost)
	if err == nil && (len(text) == 0 || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0) {
		err = errors.New("it is no text in UTF-8")
	}
	if err != nil {
		err = m.at("instructions_file", &agent.Error{Kind: agent.KindInvalid, Message: "cannot read " + m.Written.InstructionsFile, Hint: "name a file of at most 64 KiB; a relative path begins at the manifest", Err: err})
	}
	m.Instructions = string(text)
	return err
}

// Text is the file.
func (m *Manifest) Text() []byte { return m.text }

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
	if m.Written.Program != "" {
		asked.Program = m.Written.Program
		if err := m.prepareProgram(&asked, &values, h); err != nil {
			return asked, err
		}
	}
	variables := slices.Concat(values[settings.EnvironmentSet], values[settings.EnvironmentPass])
	delete(values, settings.EnvironmentSet)
	delete(values, settings.EnvironmentPass)
	values.Add(settings.Env, variables...)
	for _, child := range m.Children {
		values.Add(settings.Grant, "spawn:"+child.Written.Name)
	}
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

// HoldsInstructions reports whether their file, if there is one, is in the manifest's folder or below
// it, through links.
func (m *Manifest) HoldsInstructions() bool {
	real, err := filepath.EvalSymlinks(m.absolute(m.Written.InstructionsFile))
	return m.Written.InstructionsFile == "" || err == nil && m.Holds(real)
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
	step, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(f.Step, "--"), "kernel."), " ")
	s := settings.Find(step)
	switch {
	case f.Step == "program":
		return m.at("program", err)
	case f.Step == "script", m.Written.Script != "" && f.Step == m.absolute(m.Written.Script):
		return m.at("script", err)
	case s == nil || typed.Has(s.Name()):
		return m.ofAgent(err)
	case s.Name() == settings.Env:
		return m.at("environment", err)
	case s.Name() == settings.Model && m.Written.Model != "":
		return m.at("model", err)
	case !m.Written.Has(s.Name()):
		return m.ofAgent(err)
	}
	return m.at(s.ManifestKey(), asDocument(err))
}

// ofAgent is an error about no one key: in a team it names the agent.
func (m *Manifest) ofAgent(err error) error {
	if m.below == "" {
		return err
	}
	f := agent.FailureOf(err)
	message := strings.TrimPrefix(f.Step+": "+f.Message, ": ")
	return (&Manifest{Source: m.Source, text: m.text}).at(strings.TrimSuffix(m.below, "."), &agent.Error{Kind: agent.KindOf(err), Message: message, Hint: f.Hint})
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
