package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Without are what a built-in profile does not allow in addition to its own refusals.
type Without struct {
	// Modes that give a file's owner to the process that executes it, for an agent that writes into a
	// host directory (-v). Its files there belong to the directory's owner, so a file with a
	// set-user-ID bit would give every user of the host that owner's rights. Inside the sandbox
	// the bit has no effect (nosuid mounts).
	SetID       bool
	MemoryFiles bool // files without a path, which can be executed whatever mounts say
}

// ProfileWithout is Profile with more refusals. The unconfined profile has no more.
func ProfileWithout(name string, w Without) (*specs.LinuxSeccomp, error) {
	if name == Unconfined {
		return unconfined()
	}
	b, err := find(name)
	if err != nil {
		return nil, err
	}
	return b.without(w).build()
}

func (b builtin) without(w Without) builtin {
	if w.SetID {
		b = b.withoutSetID()
	}
	if w.MemoryFiles {
		b = b.withoutMemoryFiles()
	}
	return b
}

// withoutMemoryFiles refuses them as memoryFileRefusals has it. strict and minimal do it anyway,
// with an error at which programs give up.
func (b builtin) withoutMemoryFiles() builtin {
	var kept []refusal
	for _, r := range b.refusals {
		r.names = slices.DeleteFunc(slices.Clone(r.names), func(call string) bool { return call == memoryFile })
		if len(r.names) > 0 {
			kept = append(kept, r)
		}
	}
	b.refusals = slices.Concat(kept, memoryFileRefusals)
	b.conditions = narrow(nil, b.conditions, memoryFileRefusals)
	return b
}

const memoryFile = "memfd_create"

// ENOSYS as from a kernel before 3.17: programs then use a file of /dev/shm or /tmp.
var memoryFileRefusals = []refusal{
	{group: "memory-files", reason: "there is a list of programs, and a file in memory is on no mount, so no list holds there", errno: uint(unix.ENOSYS), names: []string{memoryFile}},
}

// EscapesMounts returns the calls of a checked profile by which an agent gets a program
// executed that its mounts do not let it execute: it makes a file that is on no mount, or a
// user namespace, in which it may mount. nil, the unconfined profile, has all of them.
func EscapesMounts(profile *specs.LinuxSeccomp) (calls []string) {
	for _, call := range []string{memoryFile, "clone3"} {
		if verdictOf(profile, call) != Refused {
			calls = append(calls, call)
		}
	}
	for _, call := range []string{"clone", "unshare"} {
		if makesUserNamespaces(profile, call) {
			calls = append(calls, call)
		}
	}
	return calls
}

// makesUserNamespaces reports whether a call passes with CLONE_NEWUSER in its first argument.
// It counts as refused only by a comparison of that bit.
func makesUserNamespaces(profile *specs.LinuxSeccomp, call string) bool {
	if verdict := verdictOf(profile, call); verdict != Conditional {
		return verdict == Allowed
	}
	if permissive(profile.DefaultAction) {
		return true
	}
	return slices.ContainsFunc(rulesOf(profile, call), func(rule specs.LinuxSyscall) bool {
		return permissive(rule.Action) && !slices.ContainsFunc(rule.Args, func(arg specs.LinuxSeccompArg) bool {
			return arg.Index == 0 && (arg.Op == specs.OpMaskedEqual && arg.Value&unix.CLONE_NEWUSER != 0 && arg.ValueTwo&unix.CLONE_NEWUSER == 0 ||
				arg.Op == specs.OpEqualTo && arg.Value&unix.CLONE_NEWUSER == 0)
		})
	})
}
