package advice

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/seccomp"
)

// Advice is one way to let something pass. Where no flag does, Flag and Policy are empty,
// and Note says why.
type Advice struct {
	Flag   string `json:"flag,omitempty"`   // of clove run
	Policy string `json:"policy,omitempty"` // what a document says instead
	Risk   string `json:"risk,omitempty"`   // one sentence without a full stop
	Note   string `json:"note,omitempty"`
}

// The kinds of a shadow's refusals that no record of denials has.
const (
	granting = "grant"
	model    = "model"
)

// Of says what would have let a denied action of a run with this spec pass.
func Of(spec agent.Spec, d agent.Denial) Advice {
	if d.Rule == agent.RuleRead {
		return ofReading(spec, d.Target)
	}
	switch d.Kind {
	case agent.DenialNetwork:
		return ofConnection(spec, d)
	case agent.DenialCall:
		return ofCall(spec, d)
	case agent.DenialExec:
		return ofExecution(spec, d.Target)
	case agent.DenialFile:
		return ofFile(spec, d)
	case agent.DenialCapability:
		return ofCapability(spec, d.Target)
	case agent.DenialSecret:
		return ofSecret(d)
	case granting:
		return Advice{Flag: "--grant " + d.Target, Policy: "grants: [" + quoted(d.Target) + "]", Risk: "the agent may do this as often as it likes, unless a budget bounds it"}
	case model:
		return Advice{Flag: "--model " + d.Target, Policy: "models: [" + quoted(d.Target) + "]", Risk: "its calls cost what the provider asks, unless a budget bounds them"}
	}
	return Advice{Note: "this version of clove does not know refusals of this kind"}
}

// secretNotes say what lets a request pass that a secret was refused for, by the reason in the record (egress/swap).
var secretNotes = map[string]string{
	"rule":    "a secret that is kept with --request 'METHOD PATTERN' for it would let it pass",
	"place":   "a secret that is kept with --header, or --in body or url, may be there",
	"foreign": "a secret that is kept with --host for this host would be put in",
	"use":     "clove secret list shows whether it has expired or is used up, clove grant list whether the run has a grant of it",
}

// ofSecret is about the terms of a secret, which its owner changes by keeping it anew: no setting of the run does.
func ofSecret(d agent.Denial) Advice {
	_, reason, named := strings.Cut(d.Rule, ": ")
	if !named {
		reason = d.Rule
	}
	return Advice{Note: cmp.Or(secretNotes[reason], "clove sends such a request to no server; docs/secrets.md says why")}
}

// ofCall looks for the narrowest built-in filter with the call.
func ofCall(spec agent.Spec, d agent.Denial) Advice {
	name, args := d.Target, argumentsOf(d)
	profiles := seccomp.Names() // the widest first
	for _, profile := range slices.Backward(profiles) {
		var filter *specs.LinuxSeccomp
		if profile != agent.SeccompUnconfined {
			var err error
			if filter, err = seccomp.Profile(profile); err != nil {
				continue
			}
		}
		if profile == spec.Seccomp.Profile || !seccomp.Decide(filter, name, args).Allowed() {
			continue
		}
		a := Advice{Flag: "--seccomp " + profile, Policy: "seccomp: " + profile,
			Risk: "every other call that " + profile + " allows passes too"}
		if profile == agent.SeccompUnconfined {
			a.Risk = "no call is filtered any more, so a fault of the kernel is reached more easily"
		}
		if e, err := seccomp.Explain(seccomp.Standard, name); err == nil && e.Verdict == seccomp.Refused {
			a.Risk += "; standard refuses this one because " + e.Reason
		}
		return a
	}
	return Advice{Note: "no built-in filter allows it with these arguments; --seccomp FILE takes one of your own"}
}

// argumentsOf are those of the first call that was refused.
func argumentsOf(d agent.Denial) (args [6]uint64) {
	if d.Call != nil {
		for i, text := range d.Call.Args[:min(len(d.Call.Args), len(args))] {
			args[i], _ = strconv.ParseUint(text, 0, 64)
		}
	}
	return args
}

// ofFile distinguishes a folder of the host that is read-only, a place that a read-only root
// closes, the rest of such a root, and what does not appear.
func ofFile(spec agent.Spec, d agent.Denial) Advice {
	at := path.Clean(d.Target)
	if !path.IsAbs(at) {
		return Advice{Note: "the record names no path inside"}
	}
	if bind := bindOf(spec, at); bind != nil && bind.ReadOnly && d.Errno == readOnlyError {
		mapped := bind.Source + ":" + bind.Target
		return Advice{Flag: "-v " + mapped, Policy: "files.volumes: [" + mapped + "]",
			Risk: "the agent changes and deletes what is in the host's own " + bind.Source}
	}
	for _, place := range agent.WritablePlaces {
		if below(at, place) && !spec.Files.StaysWritable(place) {
			return Advice{Policy: "files.writable: [" + strings.Join(append(slices.Clone(spec.Files.Writable), place), ", ") + "]",
				Risk: "the agent keeps files there, and may execute them where the file system allows it"}
		}
	}
	if spec.Files.ReadOnly && d.Errno == readOnlyError {
		a := Advice{Flag: "no --read-only", Policy: "files.root: writable", Risk: "the agent changes its own copy of the base system; the host's stays as it is"}
		if spec.User.UID != 0 {
			a.Note = "what belongs to root inside is also changed by root alone: --user root"
		}
		return a
	}
	dir := path.Dir(at)
	return Advice{Flag: "-v " + dir + ":" + dir + ":ro", Policy: "files.volumes: [" + dir + ":" + dir + ":ro]",
		Risk: "the agent reads all of the host's " + dir + "; without :ro it also changes it"}
}

// ofExecution is about a list of programs; what else refuses an execution is no policy.
func ofExecution(spec agent.Spec, target string) Advice {
	at := path.Clean(target)
	switch {
	case spec.Files.Execute == nil:
		return Advice{Note: "nothing is executed on this mount; a copy in another folder, such as /tmp, is"}
	case !path.IsAbs(at):
		return Advice{Note: "the record names no path inside"}
	case slices.ContainsFunc(agent.WritablePlaces, func(place string) bool {
		return strings.HasPrefix(at, place+"/") && spec.Files.StaysWritable(place)
	}):
		return Advice{Note: "the agent can write there, and with a list of programs nothing that it writes is executed"}
	}
	return Advice{Flag: "--allow-exec " + at, Policy: "files.execute: [" + strings.Join(append(slices.Clone(spec.Files.Execute), at), ", ") + "]",
		Risk: "the agent does all that this program can do with its rights; an interpreter runs any script"}
}

// ofReading is about a list of what may be read.
func ofReading(spec agent.Spec, target string) Advice {
	at := path.Clean(target)
	if !path.IsAbs(at) {
		return Advice{Note: "the record names no path inside"}
	}
	if bind := bindOf(spec, at); bind != nil && !bind.ReadOnly {
		at = bind.Target // a part of a writable volume cannot be listed
	}
	if at == "/" {
		return Advice{Note: "the names in / cannot be listed; what is in its folders can be allowed"}
	}
	return Advice{Flag: "--allow-read " + at, Policy: "files.read: [" + strings.Join(append(slices.Clone(spec.Files.Read), at), ", ") + "]",
		Risk: "the agent reads all of it, and sends what it has read wherever its network leads"}
}

// readOnlyError is how a record names the answer of a read-only mount.
const readOnlyError = "EROFS"

func below(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

// bindOf is the innermost volume that a path is in.
func bindOf(spec agent.Spec, at string) (found *agent.Bind) {
	for i, b := range spec.Files.Binds {
		if below(at, b.Target) && (found == nil || len(b.Target) > len(found.Target)) {
			found = &spec.Files.Binds[i]
		}
	}
	return found
}

func ofCapability(spec agent.Spec, name string) Advice {
	short := strings.TrimPrefix(name, "CAP_")
	switch {
	case !slices.Contains(agent.RootCapabilities, name):
		return Advice{Note: "no agent has this capability, whatever its policy says"}
	case slices.Contains(spec.CapDrop, name) || slices.Contains(spec.CapDrop, agent.AllCapabilities):
		return Advice{Flag: "no --cap-drop " + short, Policy: "capabilities.drop: without " + short,
			Risk: "root inside has the capability over the agent's own files and processes"}
	case spec.User.UID != 0:
		return Advice{Flag: "--user root", Policy: "user: root",
			Risk: "the agent is root inside, and changes its whole file system; outside it has no rights"}
	}
	return Advice{Note: "root inside has it; the file or the id in question is none of the agent's"}
}

// limits are the flags and keys of what may end a run, by the name in its record.
var limits = map[string]Advice{
	agent.ControlMemory:    {Flag: "--memory", Policy: "limits.memory"},
	agent.ControlSockets:   {Flag: "--memory", Policy: "limits.memory"},
	agent.ControlWallClock: {Flag: "--timeout", Policy: "limits.timeout"},
	agent.ControlCPUTime:   {Flag: "--cpu-time", Policy: "limits.cpu_time"},
	agent.ControlOutput:    {Flag: "--output-limit", Policy: "limits.output"},
	agent.ControlDisk:      {Flag: "--disk", Policy: "limits.disk"},
	agent.LimitDiskFiles:   {Flag: "--disk", Policy: "limits.disk"},
}

// LargerBudget is what a run may be given whose budget ended it, as --budget takes it.
func LargerBudget(hit agent.LimitHit) string {
	return budget.Larger(budget.Dimension(hit.Name), hit.Value, hit.Used, hit.Wanted, budget.Period(hit.Period))
}

// MoreBudget is what LargerBudget adds, as clove budget raise takes it.
func MoreBudget(hit agent.LimitHit) string {
	return budget.More(budget.Dimension(hit.Name), hit.Value, hit.Used, hit.Wanted)
}

// OfLimit names the flag and the key of a limit that ended a run, of a budget with a larger amount.
// That of a budget which several runs spend from is no flag's.
func OfLimit(hit agent.LimitHit, status agent.Status) Advice {
	switch {
	case status == agent.StatusBudget && hit.Account != "":
		return Advice{}
	case status == agent.StatusBudget:
		more := LargerBudget(hit)
		return Advice{Flag: "--budget " + more, Policy: "budgets: [" + more + "]"}
	}
	return limits[hit.Name]
}
