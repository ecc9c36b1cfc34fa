package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/seccomp"
)

// filters are the programs of a run: the agent's, and that of PID 1.
type filters struct {
	profile *specs.LinuxSeccomp // of the agent's; nil: unconfined
	agent   *seccomp.Filter
	init    []byte
	// beyond are the calls that a run which is observed notes.
	beyond []seccomp.Watch
}

// order adds the agent's filter to its orders.
func (f filters) order(orders *initproto.Orders) {
	if f.agent != nil {
		orders.Filter, orders.Reporting = f.agent.Plain, f.agent.Reporting
	}
}

// profile finds the profile that the spec names; nil is unconfined.
func profile(spec agent.Spec) (*specs.LinuxSeccomp, error) {
	switch {
	case spec.Seccomp.Document != nil:
		document, err := seccomp.Parse(spec.Seccomp.Document)
		if err == nil && spec.Files.Execute != nil {
			err = checkHoldsList(document)
		}
		return document, err
	default:
		return seccomp.ProfileWithout(spec.Seccomp.Profile, narrower(spec))
	}
}

// narrower is what a built-in profile refuses because of the run's files.
func narrower(spec agent.Spec) seccomp.Without {
	return seccomp.Without{SetID: writesHostFiles(spec), MemoryFiles: spec.Files.Execute != nil}
}

// checkHoldsList refuses a filter under which a list of programs would not hold.
func checkHoldsList(document *specs.LinuxSeccomp) error {
	if calls := seccomp.EscapesMounts(document); len(calls) > 0 {
		return fmt.Errorf("under it a list of programs does not hold: it allows %s, with which others are executed; refuse it, or omit the list", strings.Join(calls, ", "))
	}
	return nil
}

// writesHostFiles reports whether what the agent writes can be a file of the
// host's, where a set-user-ID program would run as its owner.
func writesHostFiles(spec agent.Spec) bool {
	return slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return !b.ReadOnly })
}

// ruleOfCall is the rule of a denial, and the reason behind it.
func ruleOfCall(spec agent.Spec, call string) (rule string, explained seccomp.Explanation) {
	rule = "seccomp " + spec.Seccomp.Profile
	explained, err := explainCall(spec, call)
	if err == nil && explained.Group != "" {
		rule += ": " + explained.Group
	}
	return rule, explained
}

// explainCall says why the run's filter refuses a call.
func explainCall(spec agent.Spec, call string) (seccomp.Explanation, error) {
	if spec.Seccomp.Document == nil {
		return seccomp.ExplainWithout(spec.Seccomp.Profile, call, narrower(spec))
	}
	own, err := profile(spec)
	if err != nil {
		return seccomp.Explanation{}, err
	}
	return seccomp.ExplainProfile(own, call)
}
