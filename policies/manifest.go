package policies

import (
	"reflect"
	"slices"
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
	Description  string   `json:"description,omitempty" doc:"what it is for, in a sentence"`
	Extends      string   `json:"extends,omitempty" doc:"the policy below, as clove run --policy: a level, the name of a document, or the path of one; standard if it is absent"`
	Script       string   `json:"script,omitempty" doc:"a script or program of the host, as SCRIPT of clove run; a relative path begins at the manifest"`
	Command      []string `json:"command,omitempty" doc:"a command of the sandbox and its arguments, in place of script"`
	Model        string   `json:"model,omitempty" doc:"in place of both: clove's own loop has this model work, which is also one that the agent may call"`
	Instructions string   `json:"instructions,omitempty" doc:"with model: what it is told before each prompt"`
	Home         string   `json:"home,omitempty" enum:"kept" doc:"kept: a home that stays, under the agent's name, as clove run --home"`
	Args         []string `json:"args,omitempty" doc:"arguments of the script; those of the command line come behind them"`
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
		return invalid("write script: agent.py, command: [PROGRAM, ARGUMENT], or model: NAME", "it names nothing to run")
	case t.ways() > 1:
		return invalid("keep one of them", "it has two of script, command and model")
	case t.Instructions != "" && t.Model == "":
		return invalid("write model: NAME", "instructions belong to a model")
	case t.Home != "" && t.Home != HomeKept:
		return invalid("write home: kept, or omit the key", "home: %.64q is not kept", t.Home)
	case len(t.Args) > 0 && t.Script == "":
		return invalid("write them behind the program in command", "args belong to a script")
	}
	return nil
}

// ways are how many things it says to run.
func (t Task) ways() (n int) {
	for _, is := range []bool{t.Script != "", len(t.Command) > 0, t.Model != ""} {
		if is {
			n++
		}
	}
	return n
}

// HomeKept is the value of home.
const HomeKept = "kept"

// MarshalJSON writes the manifest as its form.
func (m Manifest) MarshalJSON() ([]byte, error) {
	return marshal(manifestForm(), m.ManifestHead, m.Values, (*settings.Setting).ManifestKey)
}
