package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/seccomp"
)

// filters makes the sandbox's filter from the profile that the spec names, and the agent's own
// one where the profile cannot hold clove-init, too. nil is unconfined.
func filters(spec agent.Spec) (sandbox *specs.LinuxSeccomp, own []byte, err error) {
	all, err := profile(spec)
	if err != nil {
		return nil, nil, err
	}
	stack, err := seccomp.StackOf(spec.Seccomp.Profile, all)
	if err != nil || stack.Agent == nil {
		return stack.Sandbox, nil, err
	}
	own, err = seccomp.Program(stack.Agent)
	return stack.Sandbox, own, err
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
