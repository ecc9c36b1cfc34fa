package settings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/secrets"
)

// Names of what agents share that code asks for.
const (
	AgentSocket = "agent-socket"
	Model       = "model"
	ModelSetup  = "model-setup"
	Secret      = "secret"
	ModelLog    = "model-log"
	Grant       = "grant"
	Budget      = "budget"
	AtEnd       = "at-end"
	OnWarn      = "on-warn"
	OnEnd       = "on-end"
	OnAsk       = "on-ask"
	OnAskKey    = "on-ask-key"
	OnDenial    = "on-denial"
	Asks        = "ask"
	AskHold     = "ask-hold"
	Namespace   = "namespace"
	SpawnDepth  = "spawn-depth"
	Orphans     = "orphans"
	StdoutTo    = "stdout-to"
	StdinFrom   = "stdin-from"
	Idle        = "idle"
)

// notForContainers is what to do about a setting that needs a socket of the agent's own.
const notForContainers = "not for OCI containers yet: omit it, or use clove run"

// Shared is what the run has of what agents share. The spec holds the texts in their canonical
// form.
var Shared = sync.OnceValue(func() *Section {
	return &Section{After: checkShared, Rows: []Setting{
		{
			Flag: Model, Key: "models", Form: List, Flags: Join, Group: GroupShared, Pod: notForContainers,
			Usage: "let it call a model of models.yaml, NAME or glob[:provider-tools or :provider-state]; echo needs no key",
			Doc:   "names or globs of language models that it may call",
			Read:  each(readModel), Wider: func(base, wide agent.Spec) []Difference { return widerGrants(base, wide, isModel) },
		},
		{
			Flag: Grant, Key: "grants", Form: List, Flags: Join, Group: GroupShared, Pod: notForContainers,
			Usage: "let it do one thing, KIND:PATTERN[:RIGHTS], for example state:/namespace/notes:ro",
			Doc:   "KIND:PATTERN[:RIGHTS], as clove run --grant",
			Read:  readGrants, Wider: func(base, wide agent.Spec) []Difference { return widerGrants(base, wide, isNoModel) },
		},
		{
			Flag: Budget, Key: "budgets", Form: List, Flags: ByName, Extends: ByName, Group: GroupShared, Pod: notForContainers,
			Usage: "limit what it spends, DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]",
			Doc:   "DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT], as clove run --budget; one for each dimension",
			Read:  each(readBudget), Wider: widerBudgets,
		},
		{
			Flag: AtEnd, Key: "at_end", Group: GroupShared, Usage: "when a budget is spent: end, pause or refuse", Default: "end", Pod: notForContainers,
			Doc: "what happens when a budget is spent", Enum: strings.Join(agent.AtEnds, "|"),
			Read: one(readAtEnd), Wider: widerAtEnd,
		},
		{
			Flag: OnDenial, Key: "on_denial", Group: GroupShared, Usage: "when it is refused something: deny, pause, end or end-after:N", Default: "deny", Pod: notForContainers,
			Doc:  "what a refusal does to the run: deny, pause, end or end-after:N",
			Read: one(readOnDenial), Wider: widerOnDenial,
		},
		{
			Flag: Asks, Key: "ask", Form: List, Flags: Join, Extends: Union, Group: GroupShared, Pod: notForContainers,
			Usage: "ask people about what no rule decides: " + strings.Join(agent.Asks, ", ") + "; KIND=N: N users must say yes",
			Doc:   "what people are asked about where no rule decides: " + strings.Join(agent.Asks, ", ") + "; with KIND=N the yes of N users is needed",
			Read:  each(readAsk), Wider: widerAsks,
		},
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.Kernel.AskHold }, read: clock}.row(Setting{
			Flag: AskHold, Manifest: "ask_hold", Group: GroupShared, Usage: "hold a connection, a request or a call of a tool for people's answer for this long, 1s to 1h", Default: "10m", Pod: notForContainers,
		}),
		{
			Flag: AgentSocket, Key: "agent_socket", Form: Switch, On: "true", Group: GroupShared, Pod: notForContainers,
			Usage: "give it a socket of its own, also without a grant",
			Doc:   "whether the agent has a socket of its own",
			Read:  yes(func(s *agent.Spec) *bool { return &s.Kernel.Socket }),
			Wider: func(base, wide agent.Spec) []Difference {
				return more(wide.Kernel.Socket && !base.Kernel.HasSocket(), "none", "one")
			},
		},
		{
			Flag: Secret, Key: "secrets", Form: List, Flags: Join, Extends: Union, Group: GroupShared, Pod: notForContainers,
			Usage: "let it use a secret that it never has: NAME:env=VARIABLE, NAME:file=/PATH, NAME:git, npm, pip, gh or ssh; or that it reads: NAME:plain",
			Doc:   "secrets that it may use, with the place of each placeholder, as clove run --secret",
			Read:  each(readSecret), Wider: func(base, wide agent.Spec) []Difference {
				asks := wide.Kernel.People(agent.AskSecret) > 0 // else it has a grant for each
				return beyond(base.Kernel.Secrets, wide.Kernel.Secrets, func(have []string, text string) bool {
					name, as, _ := strings.Cut(text, ":")
					switch {
					case as == secrets.MountPlain: // it has more than a use
						return slices.Contains(have, text)
					case asks && slices.ContainsFunc(have, func(had string) bool { return strings.HasPrefix(had, name+":") }):
						return true
					}
					return grant.Covered(base.Kernel.FirstGrants(), "secret:"+name)
				})
			},
		},
		{
			Flag: ModelSetup, Manifest: "model_setup", Group: GroupShared, Pod: notForContainers,
			Usage: "write the file that a client of models needs into its home: " + strings.Join(agent.ModelSetups(), ", "),
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.ModelSetup }),
		},
		{
			Flag: ModelLog, Manifest: "model_log", Form: Switch, On: "true", Group: GroupShared, Pod: notForContainers,
			Usage: "keep what its calls of models say and get, for clove logs --models",
			Read:  yes(func(s *agent.Spec) *bool { return &s.Kernel.ModelLog }),
		},
		{
			Flag: OnWarn, Manifest: "on_warn", Group: GroupShared, Pod: notForContainers,
			Usage: "when a budget reaches its warning: run this command as you, or post to this URL",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.OnWarn }),
		},
		{
			Flag: OnEnd, Manifest: "on_end", Group: GroupShared, Pod: notForContainers,
			Usage: "when a budget is spent: run this command as you, or post to this URL",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.OnEnd }),
		},
		{
			Flag: OnAsk, Manifest: "on_ask", Group: GroupShared, Pod: notForContainers,
			Usage: "when people are asked: run this command as you, or post to this URL; it may answer",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.OnAsk }),
		},
		{
			Flag: OnAskKey, Manifest: "on_ask_key", Group: GroupShared, Pod: notForContainers,
			Usage: "your file with the key that proves answers of --on-ask, an absolute path",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.OnAskKey }),
		},
		{
			Flag: SpawnDepth, Manifest: "spawn_depth", Form: Amount, Group: GroupShared, Usage: "levels of agents that may be below its children", Default: "0", Pod: notForContainers,
			Read: one(func(r *Reader, text string) (err error) {
				if r.Spec.Kernel.SpawnDepth, err = strconv.Atoi(text); err != nil {
					err = Invalid(SpawnDepth, fmt.Sprintf("use 0 to %d", agent.SpawnDepthMost), "%.64q is no number", text)
				}
				return err
			}),
		},
		{
			Flag: Orphans, Manifest: Orphans, Group: GroupShared, Usage: "keep: children that it starts go on after its end", Pod: notForContainers,
			Read: text(func(s *agent.Spec) *string { return &s.Kernel.Orphans }),
		},
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.Kernel.Idle }, read: clock}.row(Setting{
			Flag: Idle, Manifest: Idle, Group: GroupShared, Usage: "end it when it has only waited for mail and jobs for this long", Pod: notForContainers,
		}),
		{
			Flag: StdoutTo, Manifest: "stdout_to", Group: GroupShared, Pod: notForContainers,
			Usage: "send each line of its standard output as a message, mail:NAME[,json]; needs a grant send:NAME",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.StdoutTo }),
		},
		{
			Flag: StdinFrom, Manifest: "stdin_from", Group: GroupShared, Pod: notForContainers,
			Usage: "give it the messages that come to it by a name as lines of standard input, mail:NAME[,json]; needs a grant name:NAME, if that is not its own",
			Read:  text(func(s *agent.Spec) *string { return &s.Kernel.StdinFrom }),
		},
		{
			Flag: Namespace, Manifest: Namespace, Group: GroupShared, Usage: "path below you that its names and budgets belong to",
			Read: text(func(s *agent.Spec) *string { return &s.Kernel.Namespace }),
		},
	}}
})

// checkShared makes the checks that name a flag, and come before those of the whole spec.
func checkShared(r *Reader) error {
	if r.Spec.Kernel.People(agent.AskBudget) > 0 && r.Spec.Kernel.AtEnd == "" {
		r.Spec.Kernel.AtEnd = string(budget.Pause) // a question about a budget needs a run that waits for the answer
	}
	k := r.Spec.Kernel
	if k.ModelLog && !k.HasModels() {
		return Invalid(ModelLog, "add --model NAME", "a run that may call no model has none to log")
	}
	for _, check := range []struct {
		flag string
		err  error
	}{
		{OnWarn, agent.ValidateCallout(OnWarn, k.OnWarn)}, {OnEnd, agent.ValidateCallout(OnEnd, k.OnEnd)}, {OnAsk, agent.ValidateCallout(OnAsk, k.OnAsk)}, {Namespace, agent.ValidateNamespace(k.Namespace)},
		{StdoutTo, streamMistake(StdoutTo, k.StdoutTo)}, {StdinFrom, streamMistake(StdinFrom, k.StdinFrom)},
	} {
		if check.err != nil {
			return mistake(check.flag, check.err)
		}
	}
	return nil
}

func streamMistake(flag, text string) (err error) {
	if text != "" {
		_, err = agent.ParseMailStream(flag, text)
	}
	return err
}

func readModel(r *Reader, name string) error {
	scope, err := grant.Parse(string(grant.Model) + ":" + name)
	if err != nil {
		return mistake(Model, err)
	}
	r.Spec.Kernel.Grants = append(r.Spec.Kernel.Grants, scope.String())
	return nil
}

func readSecret(r *Reader, text string) error {
	m, err := secrets.ParseMount(text)
	if err != nil {
		return Invalid(Secret, "clove secret list shows yours", "%v", err)
	}
	if !slices.Contains(r.Spec.Kernel.Secrets, m.String()) {
		r.Spec.Kernel.Secrets = append(r.Spec.Kernel.Secrets, m.String())
	}
	return nil
}

// readGrants puts grants before those of models.
func readGrants(r *Reader, texts []string) error {
	var grants []string
	for _, text := range texts {
		scope, err := grant.Parse(text)
		if err != nil {
			return mistake(Grant, err)
		}
		grants = append(grants, scope.String())
	}
	r.Spec.Kernel.Grants = append(grants, r.Spec.Kernel.Grants...)
	return nil
}

func isModel(text string) bool   { return strings.HasPrefix(text, string(grant.Model)+":") }
func isNoModel(text string) bool { return !isModel(text) }

// widerGrants compares the grants that are of a kind.
func widerGrants(base, wide agent.Spec, is func(string) bool) []Difference {
	of := func(s agent.Spec) []string {
		return slices.DeleteFunc(slices.Clone(s.Kernel.Grants), func(text string) bool { return !is(text) })
	}
	has := base.Kernel.FirstGrants()
	return beyond(of(base), of(wide), func(_ []string, text string) bool { return grant.Covered(has, text) })
}

func readBudget(r *Reader, text string) error {
	limit, err := budget.ParseLimit(text)
	if err != nil {
		return mistake(Budget, err)
	}
	r.Spec.Kernel.Budgets = append(r.Spec.Kernel.Budgets, limit.String())
	return nil
}

// widerBudgets: a line that wide lacks has no limit, and one for another period is another
// limit.
func widerBudgets(base, wide agent.Spec) (all []Difference) {
	b, w := lines(base.Kernel.Budgets), lines(wide.Kernel.Budgets)
	for _, key := range slices.Sorted(maps.Keys(b)) {
		have, found := w[key]
		if !found || have.Period != b[key].Period || have.Granted > b[key].Granted {
			to := "no limit"
			if found {
				to = have.String()
			}
			all = append(all, Difference{From: b[key].String(), To: to})
		}
	}
	return all
}

func lines(texts []string) map[string]budget.Limit {
	all := map[string]budget.Limit{}
	for _, text := range texts {
		if limit, err := budget.ParseLimit(text); err == nil {
			all[string(limit.Dimension)] = limit
		}
	}
	return all
}

func readAtEnd(r *Reader, text string) error {
	at, err := budget.ParseAtEnd(text)
	if err != nil {
		return mistake(AtEnd, err)
	}
	r.Spec.Kernel.AtEnd = string(at)
	return nil
}

// widerAtEnd goes by what happens to the agent: it is ended, paused, or lives on.
func widerAtEnd(base, wide agent.Spec) []Difference {
	b, w := cmp.Or(base.Kernel.AtEnd, agent.AtEnds[0]), cmp.Or(wide.Kernel.AtEnd, agent.AtEnds[0])
	return more(slices.Index(agent.AtEnds, w) > slices.Index(agent.AtEnds, b), b, w)
}

func readOnDenial(r *Reader, text string) error {
	r.Spec.Kernel.OnDenial = text
	if _, _, err := r.Spec.Kernel.Denial(); err != nil {
		return mistake(OnDenial, err)
	}
	return nil
}

func widerOnDenial(base, wide agent.Spec) []Difference {
	return more(denial(wide.Kernel) > denial(base.Kernel), cmp.Or(base.Kernel.OnDenial, "deny"), cmp.Or(wide.Kernel.OnDenial, "deny"))
}

// denial orders what a refusal does: the more calls may be refused before the agent ends,
// the wider.
func denial(k agent.Kernel) float64 {
	switch what, after, err := k.Denial(); {
	case err != nil, what == "deny":
		return math.Inf(1)
	case what == "pause":
		return math.MaxInt32
	default:
		return float64(after)
	}
}
