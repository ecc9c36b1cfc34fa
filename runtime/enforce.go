package runtime

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// prober answers what the controls need to know of this machine. doctor shows the same
// answers.
type prober interface {
	// mechanism names what enforces a control here, or "" and why nothing does.
	mechanism(control string) (how, why, remedy string)
	// hardLimit is this process's own hard resource limit, and whether it may
	// be raised.
	hardLimit(name string) (limit uint64, raisable bool)
}

// controlled is one limit or protection of a run, and whether a spec asks for it.
type controlled struct {
	name  string
	asked func(agent.Spec) bool
}

func always(agent.Spec) bool { return true }

func ownNetwork(s agent.Spec) bool { return s.Network != agent.NetworkHost }

// controls lists every control that a record names, in the order in which a
// refusal reports them.
var controls = []controlled{
	{agent.ControlNamespaces, always},
	{agent.ControlSeccomp, func(s agent.Spec) bool { return s.Seccomp.Profile != agent.SeccompUnconfined }},
	{agent.ControlExecute, func(s agent.Spec) bool { return s.Files.Execute != nil }},
	{agent.ControlDevices, always},
	{agent.ControlLandlock, func(s agent.Spec) bool { return s.Files.Landlock == agent.LandlockRequired }},
	{agent.ControlRead, func(s agent.Spec) bool { return s.Files.Read != nil }},
	{agent.ControlNetwork, ownNetwork},
	{agent.ControlEgress, agent.Spec.Gated},
	{agent.ControlMemory, always},
	{agent.ControlMemorySwap, always},
	{agent.ControlSockets, ownNetwork}, // in the host's network, queues cannot be attributed to an agent
	{agent.ControlPids, always},
	{agent.ControlDisk, always},
	{agent.ControlShm, always},
	{agent.ControlRlimits, func(s agent.Spec) bool { return len(s.Limits.Rlimits) > 0 }},
	{agent.ControlCPU, func(s agent.Spec) bool { return s.Limits.CPUs > 0 }},
	{agent.ControlCPUSet, func(s agent.Spec) bool { return s.Limits.CPUSet != "" }},
	{agent.ControlCPUTime, func(s agent.Spec) bool { return s.Limits.CPUTime > 0 }},
	{agent.ControlWallClock, func(s agent.Spec) bool { return s.Limits.WallClock > 0 }},
	{agent.ControlClockStart, func(s agent.Spec) bool { return s.ClockStart > 0 }},
	{agent.ControlOutput, func(s agent.Spec) bool { return s.Limits.OutputBytes > 0 }},
}

// weakenable are the controls that --allow-unenforced can do without. The
// others have no weaker form that would still be a sandbox, or always hold.
var weakenable = []string{
	agent.ControlCPU, agent.ControlCPUSet, agent.ControlCPUTime, agent.ControlMemory,
	agent.ControlMemorySwap, agent.ControlPids, agent.ControlRlimits, agent.ControlSockets,
}

// enforcement has the mechanism behind each limit of a run, and the limits without one.
type enforcement struct {
	enforced   map[string]string // control to mechanism
	unenforced []string          // sorted
}

func (e enforcement) lacks(name string) bool { return slices.Contains(e.unenforced, name) }

// enforce decides, before anything is made, what enforces each control that the spec
// asks for. If nothing enforces one, the run is refused, unless the spec names it in
// AllowUnenforced.
func enforce(spec agent.Spec, h prober) (enforcement, error) {
	e := enforcement{enforced: map[string]string{}, unenforced: []string{}}
	if err := checkWeakened(spec.AllowUnenforced); err != nil {
		return e, err
	}
	for _, c := range controls {
		if !c.asked(spec) {
			continue
		}
		how, why, remedy := h.mechanism(c.name)
		// That setrlimit works says nothing of the values: they are compared with what this
		// process may give.
		if c.name == agent.ControlRlimits && how != "" {
			how, why, remedy = rlimitMechanism(spec.Limits.Rlimits, h)
		}
		switch {
		case how != "":
			e.enforced[c.name] = how
		case slices.Contains(spec.AllowUnenforced, c.name),
			c.name == agent.ControlSockets && e.lacks(agent.ControlMemory): // a share of a limit that is not there
			e.unenforced = append(e.unenforced, c.name)
		default:
			return e, refusal(c.name, why, remedy)
		}
	}
	if spec.Seccomp.Profile == agent.SeccompUnconfined {
		e.unenforced = append(e.unenforced, agent.ControlSeccomp)
	} else {
		e.enforced[agent.ControlSeccomp] = spec.Seccomp.Profile
	}
	if !ownNetwork(spec) {
		e.unenforced = append(e.unenforced, agent.ControlNetwork, agent.ControlSockets)
	}
	slices.Sort(e.unenforced)
	return e, nil
}

// checkWeakened rejects a name that cannot be weakened, also where this host enforces it: a
// request must mean the same on every host.
func checkWeakened(names []string) error {
	for _, name := range names {
		if !slices.Contains(weakenable, name) {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--allow-unenforced",
				Message: fmt.Sprintf("%q cannot be weakened", name),
				Hint:    "it takes " + strings.Join(weakenable, ", ")}
		}
	}
	return nil
}

// refusal offers --allow-unenforced only for what can be weakened; for the rest the remedy
// is all there is.
func refusal(name, why, remedy string) error {
	hint := remedy
	if slices.Contains(weakenable, name) {
		hint = strings.TrimPrefix(hint+"; ", "; ") + "or run without it: --allow-unenforced=" + name
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "enforce " + name,
		Message: fmt.Sprintf("this host cannot enforce %s: %s", name, why), Hint: hint}
}

// rlimitMechanism refuses a hard limit above clove's own where the kernel
// would not let it be raised (setrlimit(2), CAP_SYS_RESOURCE).
func rlimitMechanism(asked []agent.Rlimit, h prober) (how, why, remedy string) {
	for _, r := range asked {
		limit, raisable := h.hardLimit(r.Name)
		if r.Hard > limit && !raisable {
			return "", fmt.Sprintf("%s may be at most %d here", r.Name, limit),
				fmt.Sprintf("ask for --ulimit %s=%d or less, or start clove with a higher hard limit", r.Name, limit)
		}
	}
	return "setrlimit", "", ""
}
