package seccomp

import (
	"maps"
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// Decision is a filter's answer to one call.
type Decision struct {
	Action specs.LinuxSeccompAction
	Errno  unix.Errno // with SCMP_ACT_ERRNO only
}

// Allowed reports whether the kernel carries the call out.
func (d Decision) Allowed() bool { return permissive(d.Action) }

// String is "allow", "log", "kill", "trap", or the name of the errno.
func (d Decision) String() string {
	switch d.Action {
	case specs.ActAllow:
		return "allow"
	case specs.ActLog:
		return "log"
	case specs.ActTrap:
		return "trap"
	case specs.ActErrno:
		return unix.ErrnoName(d.Errno)
	}
	return "kill"
}

// decisionOf applies runc's default error number, EPERM.
func decisionOf(action specs.LinuxSeccompAction, errno *uint) Decision {
	switch {
	case action != specs.ActErrno:
		return Decision{Action: action}
	case errno == nil:
		return Decision{action, unix.EPERM}
	}
	return Decision{action, unix.Errno(*errno)}
}

// permissive reports whether a call with this action is carried out.
func permissive(action specs.LinuxSeccompAction) bool {
	return action == specs.ActAllow || action == specs.ActLog
}

// Decide is what a checked profile answers a native call, as runc and libseccomp load it. nil
// is the unconfined profile. A call that this machine does not have fails with ENOSYS under
// every profile.
func Decide(profile *specs.LinuxSeccomp, call string, args [6]uint64) Decision {
	number, exists := numberOf(call)
	switch {
	case !exists:
		return noSuchCall
	case profile == nil:
		return Decision{Action: specs.ActAllow}
	case answersENOSYS(profile) && number > largest(profile):
		return noSuchCall
	}
	for _, rule := range rulesOf(profile, call) {
		if !slices.ContainsFunc(rule.Args, func(arg specs.LinuxSeccompArg) bool { return !holds(arg, args[arg.Index]) }) {
			return decisionOf(rule.Action, rule.ErrnoRet)
		}
	}
	return decisionOf(profile.DefaultAction, profile.DefaultErrnoRet)
}

var noSuchCall = Decision{specs.ActErrno, unix.ENOSYS}

// rulesOf are the rules for call that have an effect. runc drops those with the default
// action, and a rule without comparisons replaces all others of its call (checkOverlap: they
// have the same action).
func rulesOf(profile *specs.LinuxSeccomp, call string) []specs.LinuxSyscall {
	standing := decisionOf(profile.DefaultAction, profile.DefaultErrnoRet)
	var rules []specs.LinuxSyscall
	for _, rule := range profile.Syscalls {
		if !slices.Contains(rule.Names, call) || decisionOf(rule.Action, rule.ErrnoRet) == standing {
			continue
		}
		if len(rule.Args) == 0 {
			return []specs.LinuxSyscall{rule}
		}
		rules = append(rules, rule)
	}
	return rules
}

// numbers is this machine's table of calls, as far as libseccomp knows them. It is read once,
// because one comparison of profiles asks for it a hundred thousand times.
var numbers = sync.OnceValue(func() map[string]int32 {
	table := map[string]int32{}
	for number := range libseccomp.ScmpSyscall(highestCall + 1) {
		if name, err := number.GetName(); err == nil {
			table[name] = int32(number)
		}
	}
	return table
})

// highestCall is far above the last number of today's tables, 470.
const highestCall = 639

// numberOf is a call's number in this machine's table.
func numberOf(call string) (number int32, exists bool) {
	number, exists = numbers()[call]
	return number, exists
}

// answersENOSYS reports whether runc answers calls above the largest number with ENOSYS.
func answersENOSYS(profile *specs.LinuxSeccomp) bool {
	return !permissive(profile.DefaultAction)
}

// largest is the largest number of the native calls that profile names.
func largest(profile *specs.LinuxSeccomp) (most int32) {
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			number, _ := numberOf(name)
			most = max(most, number)
		}
	}
	return most
}

// calls are the names of this machine's calls, sorted.
func calls() []string { return slices.Sorted(maps.Keys(numbers())) }

// Number is a call's number on this machine; exists is false if it has no such call.
func Number(call string) (number int32, exists bool) { return numberOf(call) }
