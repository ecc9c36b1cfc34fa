package seccomp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// allowedActions are the actions that a document may use.
var allowedActions = []specs.LinuxSeccompAction{
	specs.ActAllow, specs.ActLog, specs.ActErrno, specs.ActTrap,
	specs.ActKill, specs.ActKillThread, specs.ActKillProcess,
}

// refusedActions are the other actions of the runtime specification, with the reason against each.
var refusedActions = map[specs.LinuxSeccompAction]string{
	specs.ActTrace:  "with SCMP_ACT_TRACE an agent that traces itself decides which calls pass",
	specs.ActNotify: "SCMP_ACT_NOTIFY needs a listener outside, and clove has none",
}

// operators are the comparisons of the runtime specification.
var operators = []specs.LinuxSeccompOperator{
	specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpEqualTo,
	specs.OpGreaterEqual, specs.OpGreaterThan, specs.OpMaskedEqual,
}

// architectures are those whose names runc translates for libseccomp; another name fails at
// launch.
var architectures = []specs.Arch{
	specs.ArchX86, specs.ArchX86_64, specs.ArchX32, specs.ArchARM, specs.ArchAARCH64, specs.ArchMIPS,
	specs.ArchMIPS64, specs.ArchMIPS64N32, specs.ArchMIPSEL, specs.ArchMIPSEL64, specs.ArchMIPSEL64N32,
	specs.ArchPPC, specs.ArchPPC64, specs.ArchPPC64LE, specs.ArchS390, specs.ArchS390X,
	specs.ArchRISCV64, specs.ArchLOONGARCH64,
}

// flags are the flags that runc accepts. It ignores TSYNC, because it loads the filter
// before there are threads.
var flags = []specs.LinuxSeccompFlag{
	"SECCOMP_FILTER_FLAG_TSYNC", specs.LinuxSeccompFlagLog,
	specs.LinuxSeccompFlagSpecAllow, specs.LinuxSeccompFlagWaitKillableRecv,
}

// check rejects a resolved profile that would fail at launch, or that runc or libseccomp
// would enforce differently than written. The built-in profiles pass it too.
func check(p *specs.LinuxSeccomp) error {
	if err := checkAction("defaultAction", p.DefaultAction, p.DefaultErrnoRet); err != nil {
		return err
	}
	if p.ListenerPath != "" || p.ListenerMetadata != "" {
		return errors.New(refusedActions[specs.ActNotify])
	}
	for _, arch := range p.Architectures {
		if !slices.Contains(architectures, arch) {
			return fmt.Errorf("architecture %q is not known", arch)
		}
	}
	for _, flag := range p.Flags {
		if !slices.Contains(flags, flag) {
			return fmt.Errorf("flag %q is not known", flag)
		}
	}
	for _, rule := range p.Syscalls {
		if err := checkRule(rule); err != nil {
			return err
		}
	}
	if err := checkSize(p); err != nil {
		return err
	}
	return checkOverlap(p)
}

// checkSize bounds the size of the BPF program, and the time that libseccomp takes to generate it.
func checkSize(p *specs.LinuxSeccomp) error {
	comparisons := 0
	rules, inequalities := map[string]int{}, map[string]int{}
	for _, rule := range p.Syscalls {
		// libseccomp generates the arguments' comparisons for each name again.
		comparisons += len(rule.Names) * (1 + len(rule.Args))
		unequal := 0
		for _, arg := range rule.Args {
			if !equality(arg) {
				unequal++
			}
		}
		for _, name := range rule.Names {
			rules[name]++
			inequalities[name] = max(inequalities[name], unequal)
		}
	}
	if comparisons > maxComparisons {
		return fmt.Errorf("it has %d names and arguments, the limit is %d", comparisons, maxComparisons)
	}
	overlap := 0.0
	for name, exponent := range inequalities {
		if exponent < 2 {
			continue // libseccomp generates a chain, not a tree
		}
		overlap += math.Pow(float64(rules[name]), float64(exponent))
		if overlap > maxOverlap {
			return fmt.Errorf("%s: too many rules compare several arguments otherwise than for equality", name)
		}
	}
	return nil
}

// equality reports whether arg compares all bits that the kernel reads of an int or of a
// whole register. Two such comparisons are either the same or exclude each other, so they
// never form a tree.
func equality(arg specs.LinuxSeccompArg) bool {
	return arg.Op == specs.OpEqualTo || arg.Op == specs.OpMaskedEqual && arg.Value == int32Mask
}

// checkRule checks one rule by itself. runc and libseccomp read comparisons by argument
// index, so each argument may occur once.
func checkRule(rule specs.LinuxSyscall) error {
	if slices.Contains(rule.Names, "") {
		return errors.New("a rule has an empty name")
	}
	name := rule.Names[0]
	if err := checkAction(name, rule.Action, rule.ErrnoRet); err != nil {
		return err
	}
	var seen [maxArgument + 1]bool
	for _, arg := range rule.Args {
		if arg.Index > maxArgument {
			return fmt.Errorf("%s: argument index %d is above %d", name, arg.Index, maxArgument)
		}
		if seen[arg.Index] {
			return fmt.Errorf("%s: one rule compares argument %d twice, which runc reads as two alternatives: "+
				"write alternatives as two rules, and a range as one masked comparison", name, arg.Index)
		}
		seen[arg.Index] = true
		if !slices.Contains(operators, arg.Op) {
			return fmt.Errorf("%s: operator %q is not known", name, arg.Op)
		}
	}
	return nil
}

// checkAction serves the default action and the rules; subject is what the message names.
func checkAction(subject string, action specs.LinuxSeccompAction, errno *uint) error {
	if why, refused := refusedActions[action]; refused {
		return fmt.Errorf("%s: %s", subject, why)
	}
	if !slices.Contains(allowedActions, action) {
		return fmt.Errorf("%s: action %q is not known", subject, action)
	}
	if errno != nil && action != specs.ActErrno {
		return fmt.Errorf("%s: an error number goes with SCMP_ACT_ERRNO only, not with %s", subject, action)
	}
	if errno != nil && *errno > maxErrno {
		return fmt.Errorf("%s: error number %d is above %d", subject, *errno, maxErrno)
	}
	return nil
}

// checkOverlap rejects two rules of one call with different actions that could match the
// same arguments. runc drops a rule whose action is the default action, and libseccomp
// keeps the broader rule: "allow ioctl" with "refuse ioctl TIOCSTI" allows TIOCSTI.
func checkOverlap(p *specs.LinuxSeccomp) error {
	earlier := map[string][]specs.LinuxSyscall{}
	for _, rule := range p.Syscalls {
		this := decisionOf(rule.Action, rule.ErrnoRet)
		for _, name := range rule.Names {
			for _, other := range earlier[name] {
				if decisionOf(other.Action, other.ErrnoRet) != this && !exclusive(rule.Args, other.Args) {
					return fmt.Errorf("%s: two rules with different actions can match the same call, and only one would work: "+
						"say when the call is allowed, and leave the rest to defaultAction", name)
				}
			}
			earlier[name] = append(earlier[name], rule)
		}
	}
	return nil
}

// exclusive reports whether no call can match both rules, as far as pairs of comparisons show it.
func exclusive(a, b []specs.LinuxSeccompArg) bool {
	return slices.ContainsFunc(a, func(x specs.LinuxSeccompArg) bool {
		return slices.ContainsFunc(b, func(y specs.LinuxSeccompArg) bool { return contradict(x, y) })
	})
}

// contradict may miss a contradiction, which only rejects a document too many. Only pairs
// with an equality, or with two masks that share a bit, are judged.
func contradict(a, b specs.LinuxSeccompArg) bool {
	switch {
	case a.Index != b.Index:
		return false
	case a.Op == specs.OpEqualTo:
		return !holds(b, a.Value)
	case b.Op == specs.OpEqualTo:
		return !holds(a, b.Value)
	}
	return a.Op == specs.OpMaskedEqual && b.Op == specs.OpMaskedEqual && (a.ValueTwo^b.ValueTwo)&a.Value&b.Value != 0
}

// holds evaluates one comparison.
func holds(arg specs.LinuxSeccompArg, value uint64) bool {
	switch arg.Op {
	case specs.OpEqualTo:
		return value == arg.Value
	case specs.OpNotEqual:
		return value != arg.Value
	case specs.OpLessThan:
		return value < arg.Value
	case specs.OpLessEqual:
		return value <= arg.Value
	case specs.OpGreaterEqual:
		return value >= arg.Value
	case specs.OpGreaterThan:
		return value > arg.Value
	}
	// Masked equality: Value is the mask, ValueTwo what must be left.
	return value&arg.Value == arg.ValueTwo
}
