package policies

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/settings"
)

// Manifest is an agent as a file: what to run, and the settings of clove run by their keys. Its
// keys are those of policies, and those of settings that are no policy's.
type Manifest struct {
	ManifestHead
	settings.Values // as flags would give them; a switch that is off is absent
}

// ManifestHead is what of a manifest is no setting.
type ManifestHead struct {
	Version int    `json:"version" required:"true" doc:"the version of this format: 1"`
	Name    string `json:"name" required:"true" doc:"the agent's name, of letters, digits, '-', '_' and '.'; a run of it is called NAME- and the first digits of its ID"`
	Task
}

// Task is what an agent runs, and the policy below.
type Task struct {
	Description      string   `json:"description,omitempty" doc:"what it is for, in a sentence"`
	Extends          string   `json:"extends,omitempty" doc:"the policy below, as clove run --policy: a level, the name of a document, or the path of one; standard if it is absent"`
	Script           string   `json:"script,omitempty" doc:"a script or program of the host, as SCRIPT of clove run; a relative path begins at the manifest"`
	Command          []string `json:"command,omitempty" doc:"a command of the sandbox and its arguments, in place of script"`
	Program          string   `json:"program,omitempty" doc:"the name of a program of the caller's, in place of script: it is looked for in PATH and where installers put programs into a home, and shown read-only with what it needs"`
	Install          string   `json:"install,omitempty" doc:"with program: npm:PACKAGE@VERSION, which is installed once where the caller has no such program"`
	Login            []string `json:"login,omitempty" doc:"with program: targets that it may reach in a run without a model of clove's, for an account of the caller's own; as network.allow"`
	Model            string   `json:"model,omitempty" doc:"in place of all three: clove's own loop has this model work, which is also one that the agent may call"`
	Instructions     string   `json:"instructions,omitempty" doc:"with model: what it is told before each prompt"`
	InstructionsFile string   `json:"instructions_file,omitempty" doc:"in place of instructions: a file that has them, of at most 64 KiB; a relative path begins at the manifest"`
	MaxIterations    int      `json:"max_iterations,omitempty" doc:"with model: answers for one prompt, at most; as clove ask --max-iterations"`
	Context          int      `json:"context,omitempty" doc:"with model: tokens of the conversation before the model sums it up; as clove ask --context"`
	Home             string   `json:"home,omitempty" enum:"kept" doc:"kept: a home that stays, under the agent's name, as clove run --home"`
	Spawn            []string `json:"spawn,omitempty" doc:"agents that it may start: their manifests, which are added (clove manifest add) when this one is run, or agents of this host; a relative path begins at the manifest"`
	Args             []string `json:"args,omitempty" doc:"arguments of the script or program; those of the command line come behind them"`
}

var manifestForm = sync.OnceValue(func() reflect.Type { return formOf[ManifestHead]((*settings.Setting).ManifestKey) })

// ManifestSchema is the JSON Schema of manifests.
func ManifestSchema() []byte {
	return document.Schema("https://clove.run/schema/agent-1.json", "clove agent manifest, version 1", reflect.Zero(manifestForm()).Interface())
}

// ParseManifest reads a manifest. Its values are checked when a spec is built from it.
func ParseManifest(text []byte) (m Manifest, err error) {
	written, err := decode(text, manifestForm())
	if err != nil {
		return m, err
	}
	m = Manifest{written.Field(0).Interface().(ManifestHead), valuesOf(written)}
	dropOff(m.Values)
	if err := checkVersion(m.Version); err != nil {
		return m, err
	}
	if agent.ValidateName(m.Name) != nil {
		return m, invalid("write name: and a word of letters, digits, '-', '_' and '.'", "%.64q is no name of an agent", m.Name)
	}
	return m, m.Task.check()
}

// dropOff removes switches that are off, as without the flag: a row of which the text is a switch's
// reads "true" only.
func dropOff(values settings.Values) {
	for name, texts := range values {
		if s := settings.Find(name); s.Form == settings.Switch && s.Key == "" && slices.Equal(texts, []string{"false"}) {
			delete(values, name)
		}
	}
}

// check refuses a task that runs nothing, or two things.
func (t Task) check() error {
	switch {
	case t.ways() == 0:
		return invalid("write script: agent.py, command: [PROGRAM, ARGUMENT], program: NAME, or model: NAME", "it names nothing to run")
	case t.ways() > 1:
		return invalid("keep one of them", "it has two of script, command, program and model")
	case t.Model == "" && (t.Instructions != "" || t.InstructionsFile != "" || t.MaxIterations != 0 || t.Context != 0):
		return invalid("write model: NAME", "instructions, max_iterations and context belong to a model")
	case t.Instructions != "" && t.InstructionsFile != "":
		return invalid("keep one of them", "it has both instructions and instructions_file")
	case t.Home != "" && t.Home != HomeKept:
		return invalid("write home: kept, or omit the key", "home: %.64q is not kept", t.Home)
	case len(t.Args) > 0 && t.Script == "" && t.Program == "":
		return invalid("write them behind the program in command", "args belong to a script or program")
	case t.Program == "" && (t.Install != "" || len(t.Login) > 0):
		return invalid("write program: NAME", "install and login belong to a program")
	case strings.ContainsAny(t.Program, "/\x00") || strings.HasPrefix(t.Program, "-") || t.Program == "." || t.Program == "..":
		return invalid("write the name alone; script: PATH names a file", "%.64q is no name of a program", t.Program)
	case t.Install != "" && t.Package() == (Package{}):
		return invalid("write npm:PACKAGE@VERSION, with the whole version, as npm:opencode-ai@1.18.33", "%.64q names no version of a package", t.Install)
	}
	return nil
}

// ways are how many things it says to run.
func (t Task) ways() (n int) {
	for _, is := range []bool{t.Script != "", len(t.Command) > 0, t.Program != "", t.Model != ""} {
		if is {
			n++
		}
	}
	return n
}

// Package is one version of a package of npm's.
type Package struct{ Name, Version string }

// packages are the texts of install: npm's rules for names, and a version without a range.
var packages = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^npm:((?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)@([0-9][0-9A-Za-z.+-]*)$`)
})

// Package is what the manifest installs; the zero Package: nothing.
func (t Task) Package() Package {
	if parts := packages().FindStringSubmatch(t.Install); parts != nil {
		return Package{parts[1], parts[2]}
	}
	return Package{}
}

// String is the text by which npm installs it.
func (p Package) String() string { return p.Name + "@" + p.Version }

// HomeKept is the value of home.
const HomeKept = "kept"

// MarshalJSON writes the manifest as its form.
func (m Manifest) MarshalJSON() ([]byte, error) {
	return marshal(manifestForm(), m.ManifestHead, m.Values, (*settings.Setting).ManifestKey)
}
