package policies

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/settings"
)

// Team is several agents as one file.
type Team struct {
	TeamHead
	Agents map[string]TeamAgent
}

// TeamHead is what of a team is none of its agents.
type TeamHead struct {
	Version     int      `json:"version" required:"true" doc:"the version of this format: 1"`
	Name        string   `json:"name" required:"true" doc:"the team's name; the run of an agent is called NAME.AGENT"`
	Description string   `json:"description,omitempty" doc:"what it is for, in a sentence"`
	Extends     string   `json:"extends,omitempty" doc:"the policy below each agent that names none"`
	Namespace   string   `json:"namespace,omitempty" doc:"that of all its agents; the team's name if it is absent"`
	Budgets     []string `json:"budgets,omitempty" doc:"what all agents spend together: DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]"`
	AtEnd       string   `json:"at_end,omitempty" enum:"end|pause|refuse" doc:"what happens to an agent when one of these is spent"`
}

// TeamAgent is an agent of a team: a manifest without a name, or the file of one.
type TeamAgent struct {
	TeamTask
	settings.Values
}

// TeamTask is what of a team's agent is no setting.
type TeamTask struct {
	Task
	Prompt    string            `json:"prompt,omitempty" doc:"with model: what it is to do"`
	File      string            `json:"file,omitempty" doc:"in place of all other keys but depends_on: the path of a manifest"`
	DependsOn map[string]string `json:"depends_on,omitempty" doc:"agents of this file that come first, each with started, ready or ended"`
}

// AgentsMost bounds the agents of a team.
const AgentsMost = 64

// decided are the settings that a team decides for its agents.
var decided = []string{settings.Namespace, settings.After, settings.Detach, settings.Interactive, settings.TTY, settings.Remove}

// Decided is the first setting of an agent's that its team decides; empty: there is none.
func Decided(values settings.Values) string {
	for _, name := range decided {
		if values.Has(name) {
			return settings.Find(name).ManifestKey()
		}
	}
	return ""
}

// teamForm is a team as a struct: the head, and the agents by name, each a head and the settings.
var teamForm = sync.OnceValue(func() reflect.Type {
	head := reflect.TypeFor[TeamHead]()
	agents := formOf[TeamTask](func(s *settings.Setting) string {
		if slices.Contains(decided, s.Name()) {
			return ""
		}
		return s.ManifestKey()
	})
	return reflect.StructOf([]reflect.StructField{{Name: head.Name(), Type: head, Anonymous: true},
		{Name: fieldPrefix + "agents", Type: reflect.MapOf(reflect.TypeFor[string](), agents), Tag: tagOf("agents", "the agents, by name", "")}})
})

// IsTeam reports whether a text is a team's and not a manifest's.
func IsTeam(text []byte) bool { return document.PlaceOf(text, "agents") != "" }

// ParseTeam reads a team. Values of settings are checked when specs are built from it.
func ParseTeam(text []byte) (t Team, err error) {
	written, err := decode(text, teamForm())
	if err != nil {
		return t, err
	}
	t.TeamHead, t.Agents = written.Field(0).Interface().(TeamHead), map[string]TeamAgent{}
	for name, of := range written.Field(1).Seq2() {
		one := TeamAgent{of.Field(0).Interface().(TeamTask), valuesOf(of)}
		dropOff(one.Values)
		t.Agents[name.String()] = one
	}
	if err := checkVersion(t.Version); err != nil {
		return t, err
	}
	wrong := func(key, hint, format string, values ...any) error {
		return document.Wrong(placed(text, key), hint, format, values...)
	}
	switch n := len(t.Agents); {
	case agent.ValidateName(t.Name) != nil:
		return t, wrong("name", "write name: and a word of letters, digits, '-', '_' and '.'", "%.64q is no name of a team", t.Name)
	case n == 0:
		return t, wrong("agents", "write agents: and below it NAME: with what it runs", "a team has at least one agent")
	case n > AgentsMost:
		return t, wrong("agents", "make two teams of it", "there are %d agents, and a team has at most %d", n, AgentsMost)
	case agent.ValidateNamespace(t.Namespace) != nil:
		return t, wrong("namespace", "join names by '/', for example acme/research", "%.64q is not a namespace", t.Namespace)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Agents)) {
		if err := t.check(name); err != nil {
			f := agent.FailureOf(err)
			return t, wrong("agents."+name+f.Step, f.Hint, "%s", f.Message)
		}
	}
	if _, circle := t.Order(); circle != nil {
		return t, wrong("agents."+circle[0]+".depends_on", "remove one of the dependencies", "they would wait for each other: %s", strings.Join(circle, " after "))
	}
	return t, nil
}

// placed is a key with its line and column. That of a key that is absent is the one above.
func placed(text []byte, key string) string {
	for above := key; above != ""; above = above[:max(0, strings.LastIndex(above, "."))] {
		if place := document.PlaceOf(text, above); place != "" {
			return place + ": " + key
		}
	}
	return "line 1, column 1: " + key
}

// check refuses a mistake in one agent. The step of the error is the key below the agent's.
func (t Team) check(name string) error {
	one := t.Agents[name]
	for _, other := range slices.Sorted(maps.Keys(one.DependsOn)) {
		condition, key := one.DependsOn[other], ".depends_on."+other
		_, known := t.Agents[other]
		switch {
		case !known:
			return at(key, document.Meant(other, slices.Sorted(maps.Keys(t.Agents)), "name an agent of this file"), "there is no agent %.64q", other)
		case !slices.Contains(agent.Conditions, condition):
			return at(key, "write "+strings.Join(agent.Conditions, ", "), "%.64q is no condition", condition)
		}
	}
	for _, label := range []string{LabelTeam, LabelAgent} {
		if _, has := settings.Named(one.Values[settings.Label], label); has {
			return at(".labels", "choose another label", "the label %s says which agent of the team it is", label)
		}
	}
	switch {
	case agent.ValidateName(name) != nil || agent.ValidateName(t.Name+"."+name) != nil:
		return at("", "use letters, digits, '-', '_' and '.'; the team's name and the agent's have at most 62 together", "%.64q is no name of an agent", name)
	case one.File != "" && (len(one.Values) > 0 || one.ways() > 0 || one.Prompt+one.Description+one.Extends+one.Home != "" || len(one.Args) > 0):
		return at(".file", "write the other keys into the file", "beside file only depends_on may stand")
	case one.Model == "" && one.Prompt != "":
		return at(".prompt", "write model: NAME", "a prompt belongs to a model")
	case one.Model != "" && one.Prompt == "":
		return at(".model", "write prompt: and what it is to do", "it is a model, and has no prompt")
	case one.File != "":
		return nil
	}
	return one.Task.check()
}

// Labels of the runs of a team.
const (
	LabelTeam  = "team"
	LabelAgent = "agent"
)

// at is a mistake in the value of a key below an agent.
func at(key, hint, format string, values ...any) error {
	err := invalid(hint, format, values...).(*agent.Error)
	err.Step = key
	return err
}

// Order is the names of the agents, each behind those that it depends on. Where they depend on each
// other, circle is how.
func (t Team) Order() (order, circle []string) {
	var path []string
	var visit func(name string) bool
	visit = func(name string) bool {
		if slices.Contains(order, name) {
			return true
		}
		if at := slices.Index(path, name); at >= 0 {
			circle = append(path[at:], name)
			return false
		}
		path = append(path, name)
		for _, other := range slices.Sorted(maps.Keys(t.Agents[name].DependsOn)) {
			if !visit(other) {
				return false
			}
		}
		path, order = path[:len(path)-1], append(order, name)
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(t.Agents)) {
		if !visit(name) {
			return nil, circle
		}
	}
	return order, nil
}
