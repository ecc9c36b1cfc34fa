package agent

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ModelSetup is the file in which a client of models looks for its settings.
type ModelSetup struct {
	Path string // below the agent's home
	Text string
}

// modelSetups are by the client's name; docs/models.md says what each client needs. <model>
// and <url> stand for the model and for where models are.
var modelSetups = map[string]ModelSetup{
	"claude-code": {".claude/settings.json", `{"env": {"ANTHROPIC_MODEL": "<model>", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}}
`},
	"codex": {".codex/config.toml", `model = "<model>"
model_provider = "clove"
web_search = "disabled"

[model_providers.clove]
name = "clove"
base_url = "<url>/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`},
	"opencode":           opencodeSetup("openai"),
	"opencode-anthropic": opencodeSetup("anthropic"),
}

// opencodeSetup is for a model of a family. The title of a session takes a call, too, for
// which opencode would choose a model of its own.
func opencodeSetup(family string) ModelSetup {
	text := `{"model": "<family>/<model>", "small_model": "<family>/<model>", "provider": {"<family>": {"models": {"<model>": {}}}}}
`
	return ModelSetup{".config/opencode/opencode.json", strings.ReplaceAll(text, "<family>", family)}
}

// ModelClient says to a client by its variables and its first arguments what its file of ModelSetup would
// say: nothing of it is left in a home that stays, where a later run may have another model, or none.
type ModelClient struct{ Env, Args []string }

var modelClients = map[string]ModelClient{
	"claude-code": {Env: []string{"ANTHROPIC_MODEL=<model>", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}},
	"codex": {Args: []string{"-c", `model="<model>"`, "-c", `model_provider="clove"`, "-c", `web_search="disabled"`,
		"-c", `model_providers.clove={name="clove", base_url="<url>/v1", env_key="OPENAI_API_KEY", wire_api="responses"}`}},
	"opencode":           {Env: []string{"OPENCODE_CONFIG_CONTENT=" + strings.TrimSpace(opencodeSetup("openai").Text)}},
	"opencode-anthropic": {Env: []string{"OPENCODE_CONFIG_CONTENT=" + strings.TrimSpace(opencodeSetup("anthropic").Text)}},
}

// ModelClientOf sets a client up for a model; ok is false if there is none of that name.
func ModelClientOf(name, model string) (c ModelClient, ok bool) {
	row, ok := modelClients[name]
	fill := strings.NewReplacer("<model>", model, "<url>", ModelURL)
	for _, text := range row.Env {
		c.Env = append(c.Env, fill.Replace(text))
	}
	for _, text := range row.Args {
		c.Args = append(c.Args, fill.Replace(text))
	}
	return c, ok
}

// ModelSetups are the clients that Kernel.ModelSetup may name, sorted.
func ModelSetups() []string { return slices.Sorted(maps.Keys(modelSetups)) }

// ModelSetupFile returns the file that Kernel.ModelSetup asks for; one without a path: none.
func (s Spec) ModelSetupFile() (ModelSetup, error) {
	const field = "kernel.model_setup"
	name := s.Kernel.ModelSetup
	setup, known := modelSetups[name]
	if name == "" {
		return ModelSetup{}, nil
	}
	if !known {
		return setup, wrong(field, "use "+strings.Join(ModelSetups(), ", "), "%.64q is no client whose file is known", name)
	}
	model := s.Kernel.namedModel()
	if model == "" {
		return setup, wrong(field, "add --model NAME, without *", "the file of %s has the name of a model, and the run names none", name)
	}
	setup.Text = strings.NewReplacer("<model>", model, "<url>", ModelURL).Replace(setup.Text)
	file := path.Join(s.User.Home, setup.Path)
	for _, b := range s.Files.Binds {
		if b.CopyOnWrite {
			continue
		}
		if file == b.Target || strings.HasPrefix(file, strings.TrimSuffix(b.Target, "/")+"/") {
			return setup, wrong(field, "omit one of them", "%s would be written on the host: %.256q is a path of the host's", file, b.Target)
		}
	}
	if !s.Files.agentWrites(file) {
		return setup, wrong(field, "leave the agent's home writable, or omit one of them", "%s cannot be written: the root is read-only there", file)
	}
	for _, entry := range s.Env {
		if home, is := strings.CutPrefix(entry, "HOME="); is && home != s.User.Home {
			return setup, wrong(field, "omit HOME", "the file is written below %s, and HOME is %.256q", s.User.Home, home)
		}
	}
	return setup, nil
}

// ModelURL is where an agent that may call models finds them.
var ModelURL = "http://127.0.0.1:" + strconv.Itoa(ModelPort)

// modelRights may stand behind the name in a grant of a model.
var modelRights = []string{":provider-tools", ":provider-state"}

// namedModel is the first model that the run may call by its name; empty: it names none. A
// name has no character that means something in a file of a client's.
func (k Kernel) namedModel() string {
	for _, text := range k.Grants {
		if model, is := strings.CutPrefix(text, "model:"); is {
			if name := NamedModel(model); name != "" {
				return name
			}
		}
	}
	return ""
}

// NamedModel is the model that the text of a grant names, without the rights behind it; empty: it
// is a pattern.
func NamedModel(model string) string {
	for _, right := range modelRights {
		model = strings.TrimSuffix(model, right)
	}
	if strings.Trim(model, "abcdefghijklmnopqrstuvwxyz0123456789_.-/:") != "" {
		return ""
	}
	return model
}
