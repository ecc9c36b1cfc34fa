package runtime

import (
	"slices"

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
		return seccomp.Parse(spec.Seccomp.Document)
	case writesHostFiles(spec):
		return seccomp.ProfileWithoutSetID(spec.Seccomp.Profile)
	}
	return seccomp.Profile(spec.Seccomp.Profile)
}

// writesHostFiles reports whether what the agent writes can be a file of the
// host's, where a set-user-ID program would run as its owner.
func writesHostFiles(spec agent.Spec) bool {
	return slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return !b.ReadOnly })
}
