package learn

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// programs sets the list of programs, or the reasons why there is none. It comes after files and
// calls: a list needs a read-only root, and a filter that makes no programs in memory.
func (l *learner) programs() error {
	var err error
	if l.unlisted, err = l.noList(); err != nil || len(l.unlisted) > 0 {
		return err
	}
	var list []string
	for _, at := range l.seen.Programs {
		entry := agent.ExecuteEntry(at)
		list = append(list, entry)
		if !slices.Contains(l.seen.Executed, at) {
			l.why["files.execute."+entry] = "loaded, and no program of the list is linked with it"
		}
	}
	spec := agent.Spec{Files: agent.Files{ReadOnly: true, Execute: list}, Seccomp: agent.Seccomp{Profile: seccomp.Minimal}}
	if err := spec.ValidateExecute(); err != nil {
		l.unlisted = []string{agent.FailureOf(err).Message}
		return nil
	}
	l.doc.SetList(settings.Execute, list)
	return nil
}

// noList are reasons why no list would let the same run pass.
func (l *learner) noList() (reasons []string, err error) {
	switch {
	case !l.seen.ProgramsKnown || !l.seen.CallsKnown:
		return []string{"what programs load was not observed"}, nil
	case len(l.seen.Programs) == 0:
		return []string{"no program was seen"}, nil
	case l.doc.Text(settings.Root) != settings.RootReadOnly:
		return []string{"the root is writable, so the agent can change what is executed by a name"}, nil
	}
	if l.needs.Filter != nil {
		filter, err := seccomp.Parse(l.needs.Filter)
		if err != nil {
			return nil, agent.Failed("learn", err)
		}
		for _, call := range seccomp.EscapesMounts(filter) {
			reasons = append(reasons, call+" was used, by which the agent executes what is in no list")
		}
	}
	problems := map[string]string{}
	for _, p := range l.seen.Unlistable {
		problems[p.Path] = p.Reason
	}
	for _, at := range l.seen.Programs {
		how := "loaded"
		if slices.Contains(l.seen.Executed, at) {
			how = "executed"
		}
		if place := l.writable(at); place != "" {
			reasons = append(reasons, fmt.Sprintf("%s was %s, and the agent can write to %s", at, how, place))
		} else if problems[at] != "" {
			reasons = append(reasons, fmt.Sprintf("%s was %s: %s", at, how, problems[at]))
		}
	}
	return reasons, nil
}

// writable is the place around a path that the document leaves writable; empty: there is none.
func (l *learner) writable(at string) string {
	for _, place := range slices.Concat(l.doc.Values[settings.Writable], writableMounts(l.doc)) {
		if isWithin(at, place) {
			return place
		}
	}
	return ""
}

// writableMounts are the targets of a document's mounts that the agent writes to.
func writableMounts(d policies.Document) (targets []string) {
	for _, v := range d.Values[settings.Volume] {
		if !strings.HasSuffix(v, ":ro") {
			targets = append(targets, targetOf(v))
		}
	}
	for _, t := range d.Values[settings.Tmpfs] {
		target, _, _ := strings.Cut(t, ":")
		targets = append(targets, target)
	}
	return targets
}

// mostExecuted bounds the programs that comments name.
const mostExecuted = 40

// executed says why there is no list of programs, and which ones were executed.
func (l *learner) executed() (lines []string) {
	if len(l.unlisted) == 0 {
		return nil
	}
	for _, why := range first(l.unlisted, "further reasons") {
		lines = append(lines, "no list of programs: "+cut(why, 400))
	}
	return append(lines, prefixed("executed: ", first(l.seen.Executed, "more, which the observation names"))...)
}

// first are the first entries, and how many there are beyond.
func first(all []string, beyond string) []string {
	shown := slices.Clone(all[:min(mostExecuted, len(all))])
	if more := len(all) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d %s", more, beyond))
	}
	return shown
}

// unusedPrograms lists what of the runs' list was not used, or that they had none.
func (o Observation) unusedPrograms(add func(place, allowed, used string)) {
	if !o.ProgramsKnown {
		return
	}
	if o.Given.Values[settings.Execute] == nil {
		add("files.execute", "every program", fmt.Sprintf("%d programs and libraries", len(o.Programs)))
	}
	for _, entry := range o.Given.Values[settings.Execute] {
		if !slices.Contains(o.Listed, entry) {
			add("files.execute", entry, "neither executed nor loaded")
		}
	}
}
