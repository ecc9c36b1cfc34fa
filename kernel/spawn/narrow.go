package spawn

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/loop/order"
)

// narrowed is the manifest's spec with what a request makes narrower in it. An error names the field of the
// request that would make it wider, or that it does not take.
func narrowed(spec agent.Spec, p api.SpawnParams) (agent.Spec, error) {
	for _, step := range []func(*agent.Spec, api.SpawnParams) error{narrowCommand, narrowEnv, narrowLimits, narrowNetwork, narrowGrants, narrowBudgets} {
		if err := step(&spec, p); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

func wider(field, hint, format string, values ...any) error {
	return api.Failure(api.CodeDenied, hint, "the request would make the manifest wider: "+field+": "+format, values...).By(StageRequest, api.RuleRequest+field)
}

// StageRequest is the step in which a request is held against the manifest, as refusals name it.
const StageRequest = "request"

// narrowCommand appends arguments. Of clove's own loop they are one prompt, and instructions come behind
// the manifest's.
func narrowCommand(spec *agent.Spec, p api.SpawnParams) error {
	if len(spec.Command) == 0 || spec.Command[0] != order.Program {
		if p.Instructions != "" {
			return api.Failure(api.CodeParams, "pass args", "instructions are for a manifest with a model, and this one is a program")
		}
		spec.Command = slices.Concat(spec.Command, p.Args)
		return nil
	}
	o, err := order.Parse(spec.Command[1:])
	if err == nil && p.Instructions != "" {
		o.Instructions = strings.TrimPrefix(o.Instructions+"\n\n"+p.Instructions, "\n\n")
	}
	if len(p.Args) > 1 {
		return api.Failure(api.CodeParams, "pass the prompt as one argument", "it is a model, and there are %d arguments", len(p.Args))
	}
	if err == nil && len(p.Args) == 1 {
		o.Prompt, o.Chat = p.Args[0], false
	}
	if err == nil && o.Chat {
		err = errors.New("a model needs a prompt")
	}
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return api.Failure(api.CodeParams, `pass the prompt as "args": ["PROMPT"]`, "%s", err)
	}
	spec.Command = append([]string{order.Program}, o.Args()...)
	return nil
}

// reserved are variables that clove sets.
const reserved = "CLOVE_"

func narrowEnv(spec *agent.Spec, p api.SpawnParams) error {
	spec.Env = slices.Clone(spec.Env)
	for _, entry := range p.Env {
		name, _, is := strings.Cut(entry, "=")
		if !is || name == "" || strings.HasPrefix(name, reserved) {
			return api.Failure(api.CodeParams, "write NAME=VALUE; names with "+reserved+" are clove's", "env: %.64q is no variable", entry)
		}
		spec.Env = setVariable(spec.Env, name, entry)
	}
	return nil
}

// setVariable replaces the variable of this name, or appends it.
func setVariable(env []string, name, entry string) []string {
	if i := slices.IndexFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") }); i >= 0 {
		env[i] = entry
		return env
	}
	return append(env, entry)
}

func narrowLimits(spec *agent.Spec, p api.SpawnParams) error {
	l, asked := &spec.Limits, p.Limits
	swap := l.MemorySwapBytes - l.MemoryBytes
	for _, err := range []error{
		lower("memory_bytes", &l.MemoryBytes, asked.MemoryBytes), lower("cpus", &l.CPUs, asked.CPUs), lower("pids", &l.Pids, asked.Pids),
		lower("disk_bytes", &l.DiskBytes, asked.DiskBytes), lower("output_bytes", &l.OutputBytes, asked.OutputBytes),
		lower("cpu_time_ms", &l.CPUTime, time.Duration(asked.CPUTimeMS)*time.Millisecond), lower("timeout_ms", &l.WallClock, time.Duration(asked.TimeoutMS)*time.Millisecond),
	} {
		if err != nil {
			return err
		}
	}
	if l.MemorySwapBytes >= 0 {
		l.MemorySwapBytes = l.MemoryBytes + swap
	}
	l.ShmBytes = min(l.ShmBytes, l.MemoryBytes)
	return nil
}

// lower sets a limit that is at most the manifest's; 0 of the manifest is no limit, of the request nothing.
func lower[N int64 | float64 | time.Duration](field string, limit *N, asked N) error {
	switch {
	case asked == 0:
		return nil
	case asked < 0:
		return api.Failure(api.CodeParams, "give a number above 0, or leave it out", "limits.%s: %v is no limit", field, asked)
	case *limit > 0 && asked > *limit:
		return wider("limits."+field, "ask for no more, or leave it out", "%v is above %v", asked, *limit)
	}
	*limit = asked
	return nil
}

func narrowNetwork(spec *agent.Spec, p api.SpawnParams) error {
	switch p.Network {
	case "":
	case agent.NetworkNone:
		if len(p.Deny) > 0 {
			return api.Failure(api.CodeParams, "omit one of them", "network none has no rules")
		}
		spec.Network, spec.Egress = agent.NetworkNone, agent.Egress{}
	default:
		return api.Failure(api.CodeParams, "use none, and deny for single targets", "network: %.64q is not none", p.Network)
	}
	spec.Egress.Rules = slices.Clip(spec.Egress.Rules)
	for _, target := range p.Deny {
		spec.Egress.Rules = append(spec.Egress.Rules, agent.EgressRule{Deny: true, Target: target, Source: "agent.spawn"})
	}
	return nil
}

// narrowGrants leaves those that the request names, each covered by one of the manifest's. The socket that the
// manifest's grants brought stays: the child's environment names it.
func narrowGrants(spec *agent.Spec, p api.SpawnParams) error {
	if p.Grants == nil {
		return nil
	}
	has, err := scopes(spec.Kernel.Grants)
	if err != nil {
		return err
	}
	asked, err := scopes(p.Grants)
	if err != nil {
		return err
	}
	spec.Kernel.Socket = spec.Kernel.HasSocket()
	spec.Kernel.Grants = nil
	for _, one := range asked {
		if !slices.ContainsFunc(has, func(own grant.Scope) bool { return own.Covers(one) }) {
			return wider("grants", "ask for a part of the manifest's", "it has no grant that covers %s", one)
		}
		spec.Kernel.Grants = append(spec.Kernel.Grants, one.String())
	}
	spec.Kernel.ModelLog = spec.Kernel.ModelLog && spec.Kernel.HasModels()
	if !spec.Kernel.HasChildren() {
		spec.Kernel.SpawnDepth, spec.Kernel.Orphans = 0, ""
	}
	return nil
}

func scopes(texts []string) ([]grant.Scope, error) {
	all := make([]grant.Scope, len(texts))
	for i, text := range texts {
		var err error
		if all[i], err = grant.Parse(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// narrowBudgets sets limits that are at most the manifest's of the same dimension and period.
func narrowBudgets(spec *agent.Spec, p api.SpawnParams) error {
	spec.Kernel.Budgets = slices.Clone(spec.Kernel.Budgets)
	for _, text := range p.Budgets {
		asked, err := budget.ParseLimit(text)
		if err != nil {
			return err
		}
		at, has := -1, budget.Limit{}
		for i, own := range spec.Kernel.Budgets {
			if has, err = budget.ParseLimit(own); err != nil {
				return err
			}
			if has.Dimension == asked.Dimension {
				at = i
				break
			}
		}
		switch {
		case at < 0:
			spec.Kernel.Budgets = append(spec.Kernel.Budgets, text)
		case asked.Granted > has.Granted || asked.Period != has.Period:
			return wider("budgets", "ask for no more, in the same period", "%s instead of %s", text, spec.Kernel.Budgets[at])
		default:
			spec.Kernel.Budgets[at] = text
		}
	}
	return nil
}

// identified gives the child its identity, in the spec and in its environment.
func identified(spec agent.Spec, id agent.ID, manifest string) agent.Spec {
	const nameMost = 40
	spec.ID = id
	spec.Name = manifest[:min(len(manifest), nameMost)] + "-" + string(id)[:8]
	spec.Env = slices.Clone(spec.Env)
	own := map[string]string{"CLOVE_ID": string(id), "CLOVE_NAME": spec.Name, "CLOVE_MEMORY_BYTES": strconv.FormatInt(spec.Limits.MemoryBytes, 10)}
	if spec.Limits.CPUs > 0 {
		own["CLOVE_CPUS"] = strconv.FormatFloat(spec.Limits.CPUs, 'f', -1, 64)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		spec.Env = setVariable(spec.Env, name, name+"="+own[name])
	}
	return spec
}
