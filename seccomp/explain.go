package seccomp

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Explain says in one line what the profile does with a system call: whether
// it is allowed, for which arguments, or how and why it is refused. A nil
// profile is no filter. Reasons are known for the built-in profiles only.
func Explain(p *specs.LinuxSeccomp, name string) string {
	if p == nil {
		return "allowed: there is no filter"
	}
	rules := rulesFor(p, name)
	level := builtinOf(p)
	switch {
	case len(rules) == 0:
		return phrase(outcomeOf(p.DefaultAction, p.DefaultErrnoRet)) + unlisted(level, p, name)
	case level != nil && level.conditionOf(name) != nil:
		row := level.conditionOf(name)
		errno := "EPERM"
		if len(row.absent) > 0 {
			errno += " or " + unix.ErrnoName(row.absentErrno)
		}
		return fmt.Sprintf("allowed for %s; otherwise refused with %s because %s", row.allowed, errno, row.reason)
	case level != nil && level.refusalOf(name) != nil:
		return phrase(outcomeOf(rules[0].Action, rules[0].ErrnoRet)) + " because " + level.refusalOf(name).reason
	}
	return explainRules(p, rules)
}

// unlisted completes the line of a call that no rule names.
func unlisted(level *builtin, p *specs.LinuxSeccomp, name string) string {
	if level != nil && level.refusalOf(name) != nil {
		return " because " + level.refusalOf(name).reason
	}
	text := " because the profile does not name it"
	if p.DefaultAction != specs.ActAllow && p.DefaultAction != specs.ActLog {
		text += " (with ENOSYS if it is newer than every call that the profile names)"
	}
	return text
}

// explainRules reads the conditions back, grouped by what follows from them.
func explainRules(p *specs.LinuxSeccomp, rules []specs.LinuxSyscall) string {
	var order []outcome
	alternatives := map[outcome][]string{}
	for _, rule := range rules {
		o := outcomeOf(rule.Action, rule.ErrnoRet)
		if len(rule.Args) == 0 {
			return phrase(o) // other rules of this call do the same, see checkOverlap
		}
		var conditions []string
		for _, arg := range rule.Args {
			conditions = append(conditions, comparison(arg))
		}
		if alternatives[o] == nil {
			order = append(order, o)
		}
		alternatives[o] = append(alternatives[o], strings.Join(conditions, " and "))
	}
	var parts []string
	for _, o := range order {
		parts = append(parts, phrase(o)+" when "+strings.Join(alternatives[o], ", or "))
	}
	return strings.Join(parts, "; ") + "; otherwise " + phrase(outcomeOf(p.DefaultAction, p.DefaultErrnoRet))
}

// signs are the comparisons as C writes them.
var signs = map[specs.LinuxSeccompOperator]string{
	specs.OpNotEqual: "!=", specs.OpLessThan: "<", specs.OpLessEqual: "<=", specs.OpEqualTo: "==",
	specs.OpGreaterEqual: ">=", specs.OpGreaterThan: ">",
}

// comparison is one condition in words. Arguments count from 0, as in the
// kernel's struct seccomp_data.
func comparison(arg specs.LinuxSeccompArg) string {
	if arg.Op == specs.OpMaskedEqual {
		return fmt.Sprintf("(argument %d & %#x) == %#x", arg.Index, arg.Value, arg.ValueTwo)
	}
	return fmt.Sprintf("argument %d %s %#x", arg.Index, signs[arg.Op], arg.Value)
}

// rulesFor are the rules that name a system call, in the profile's order. A name
// that occurs twice in one rule counts once.
func rulesFor(p *specs.LinuxSeccomp, name string) []specs.LinuxSyscall {
	var rules []specs.LinuxSyscall
	for _, rule := range p.Syscalls {
		for _, listed := range rule.Names {
			if listed == name {
				rules = append(rules, rule)
				break
			}
		}
	}
	return rules
}

// builtinOf finds the tables that p was built from, nil for a document.
func builtinOf(p *specs.LinuxSeccomp) *builtin {
	for _, b := range builtins() {
		if built, err := b.build(); err == nil && reflect.DeepEqual(built, p) {
			return &b
		}
	}
	return nil
}

// outcomeOf applies runc's default error number.
func outcomeOf(action specs.LinuxSeccompAction, errno *uint) outcome {
	switch {
	case action != specs.ActErrno:
		return outcome{action: action}
	case errno == nil:
		return outcome{action, uint(unix.EPERM)}
	}
	return outcome{action, *errno}
}

// phrase says what the caller of a refused system call sees: an error number by
// its name, a signal, or its end.
func phrase(o outcome) string {
	switch o.action {
	case specs.ActAllow:
		return "allowed"
	case specs.ActLog:
		return "allowed and logged"
	case specs.ActTrap:
		return "answered with the signal SIGSYS"
	case specs.ActKill, specs.ActKillThread:
		return "refused by killing the thread"
	case specs.ActKillProcess:
		return "refused by killing the process"
	}
	if name := unix.ErrnoName(unix.Errno(o.errno)); name != "" {
		return "refused with " + name
	}
	return fmt.Sprintf("refused with error number %d", o.errno)
}
