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

// Team is a team's file that was read.
type Team struct {
	policies.TeamHead
	Source string       // path of the file
	Agents []*TeamAgent // each behind those that it depends on
}

// TeamAgent is an agent of a team: a manifest with what the team decides.
type TeamAgent struct {
	*Manifest
	Agent  string // its name in the team
	Prompt string // of one with a model
}

// IsTeam reports whether a file is a team's.
func IsTeam(path string, h host.Host) bool {
	text, err := host.ReadBounded(h.Absolute(path), policies.MostBytes)
	return err == nil && policies.IsTeam(text)
}

// LoadTeam reads a team and the manifests that it names. An error names the file and the place in it.
func LoadTeam(path string, h host.Host) (*Team, error) {
	file := &Manifest{Source: path}
	full := h.Absolute(path)
	text, err := host.ReadBounded(full, policies.MostBytes)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("cannot read the team %q", path), Hint: "name a team's file, as team.yaml", Err: err}
	}
	file.text, file.dir = text, filepath.Dir(full)
	written, err := policies.ParseTeam(text)
	if err != nil {
		return nil, file.wrong(err)
	}
	for setting, texts := range map[string][]string{settings.Budget: written.Budgets, settings.AtEnd: {written.AtEnd}} {
		row := settings.Find(setting)
		if err := row.Read(&settings.Reader{Spec: &agent.Spec{}}, slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })); err != nil {
			return nil, file.at(row.Key, err)
		}
	}
	if written.Namespace == "" {
		written.Namespace = written.Name
	}
	file.Written.Extends = written.Extends
	t := &Team{TeamHead: written.TeamHead, Source: path}
	order, _ := written.Order()
	for _, name := range order {
		one := written.Agents[name]
		a := &TeamAgent{Agent: name, Prompt: one.Prompt, Manifest: &Manifest{Source: path, text: text, dir: file.dir, below: "agents." + name + "."}}
		a.Written = policies.Manifest{ManifestHead: policies.ManifestHead{Version: written.Version, Task: one.Task}, Values: maps.Clone(one.Values)}
		if one.File != "" {
			if a.Manifest, err = LoadManifest(file.absolute(one.File), h); err != nil {
				return nil, file.wrong(document.Wrong(document.PlaceOf(text, "agents."+name+".file"), agent.FailureOf(err).Hint, "%s", agent.FailureOf(err).Message))
			}
			if key := policies.Decided(a.Written.Values); key != "" {
				return nil, a.at(key, invalid("", "remove it from the file, or write the agent's keys into the team", "a team decides that for its agents"))
			}
			if a.Written.Model != "" {
				return nil, a.at("model", invalid("", "write model, instructions and prompt into the team", "it is a model, and has no prompt"))
			}
		}
		if one.File == "" {
			if err := a.readOrder(); err != nil {
				return nil, err
			}
			if err := a.readChildren(h, 0); err != nil {
				return nil, err
			}
		}
		if a.Written.Extends == "" {
			a.Written.Extends = file.extends()
		}
		a.decide(written)
		t.Agents = append(t.Agents, a)
	}
	return t, t.checkOrder(written, file)
}

// decide enters what the team decides for the agent. All of it is in the digest.
func (a *TeamAgent) decide(t policies.Team) {
	v := &a.Written.Values
	a.Written.Name = t.Name + "." + a.Agent
	v.Set(settings.Detach, "true")
	v.Set(settings.Namespace, t.Namespace)
	v.Add(settings.Label, policies.LabelTeam+"="+t.Name, policies.LabelAgent+"="+a.Agent)
	for _, other := range slices.Sorted(maps.Keys(t.Agents[a.Agent].DependsOn)) {
		v.Add(settings.After, t.Name+"."+other+":"+t.Agents[a.Agent].DependsOn[other])
	}
	for _, other := range t.Agents {
		// It says so over its own socket, unless a command is asked.
		if other.DependsOn[a.Agent] == agent.AfterReady && !v.Has(settings.Ready) {
			v.Set(settings.AgentSocket, "true")
		}
	}
	if a.Prompt != "" {
		a.Written.Args = []string{a.Prompt}
	}
}

// checkOrder refuses to wait for an agent with a schedule, or for the end of one that never ends.
func (t *Team) checkOrder(written policies.Team, file *Manifest) error {
	for _, first := range t.Agents {
		always := strings.HasPrefix(first.Written.Text(settings.Restart), string(agent.RestartAlways))
		for _, name := range slices.Sorted(maps.Keys(written.Agents)) {
			condition, waits := written.Agents[name].DependsOn[first.Agent]
			key := "agents." + name + ".depends_on." + first.Agent
			switch {
			case waits && first.Written.Has(settings.Schedule):
				return file.at(key, invalid("", "remove the schedule, or the dependency", "%s has a schedule, and nothing can come after it", first.Agent))
			case waits && condition == agent.AfterEnded && always:
				return file.at(key, invalid("", "write started or ready", "%s is always restarted, and never ends", first.Agent))
			}
		}
	}
	return nil
}
