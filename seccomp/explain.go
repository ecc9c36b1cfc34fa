package seccomp

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
)

// Verdict is what a profile does with one call, whatever its arguments.
type Verdict string

// The verdicts.
const (
	Allowed     Verdict = "allowed"
	Conditional Verdict = "allowed with conditions"
	Refused     Verdict = "refused"
)

// Explanation is a profile's verdict on one call, with its reason.
type Explanation struct {
	Call    string  `json:"call"`
	Verdict Verdict `json:"verdict"`
	Group   string  `json:"group,omitempty"`       // of the row that decides; empty: no row does
	Allowed string  `json:"allowed_for,omitempty"` // with conditions only: what passes
	Reason  string  `json:"reason"`
	// Answer is what a refused call gets: an errno, "kill" or "trap". With conditions it is
	// that of the arguments that do not pass, as far as no row gives some of them another.
	Answer string `json:"answer,omitempty"`
}

// Explain says what the built-in profile of that name does with a call, and why. It knows the
// calls of this machine, and those of other machines that libseccomp or a table names.
func Explain(name, call string) (Explanation, error) { return ExplainWithout(name, call, Without{}) }

// ExplainWithout is Explain for ProfileWithout.
func ExplainWithout(name, call string, w Without) (Explanation, error) {
	if name == Unconfined {
		profile, err := unconfined()
		if err != nil {
			return Explanation{}, err
		}
		e, err := ExplainProfile(profile, call)
		if err == nil && e.Verdict != Allowed {
			unconfinedReasons().reason(&e)
		}
		return e, err
	}
	b, err := find(name)
	if err != nil {
		return Explanation{}, err
	}
	return b.without(w).explain(call)
}

func (b builtin) explain(call string) (Explanation, error) {
	profile, err := b.build()
	if err != nil {
		return Explanation{}, err
	}
	e, err := ExplainProfile(profile, call)
	if err != nil {
		return e, err
	}
	b.reason(&e)
	return e, nil
}

// reason sets what the tables say of a call, instead of what its rules show.
func (b builtin) reason(e *Explanation) {
	allowance, refusal, condition := b.allowanceOf(e.Call), b.refusalOf(e.Call), b.conditionOf(e.Call)
	switch {
	case refusal != nil:
		e.Group, e.Reason = refusal.group, refusal.reason
	case condition != nil:
		e.Group, e.Allowed, e.Reason = condition.group, condition.allowed, condition.reason
	case allowance != nil:
		e.Group, e.Reason = allowance.group, allowance.reason
	case e.Verdict == Allowed:
		e.Group, e.Reason = ordinary, ordinaryReason
	}
}

// ordinary is the group of what docker's default profile allows and no row refuses.
const (
	ordinary       = "ordinary"
	ordinaryReason = "docker's default profile allows it to a container without capabilities, and no row here refuses it"
)

// ExplainProfile says what a checked profile does with a call. A document has no reasons, so
// it gives those of standard for what that refuses.
func ExplainProfile(profile *specs.LinuxSeccomp, call string) (Explanation, error) {
	if !known(profile, call) {
		return Explanation{}, fmt.Errorf("cannot find the system call %q", call)
	}
	e := Explanation{Call: call, Verdict: verdictOf(profile, call)}
	if e.Verdict != Allowed {
		e.Answer = refusalAnswer(profile, call).String()
	}
	row := builtins()[0].refusalOf(call)
	_, exists := numberOf(call)
	switch {
	case !exists:
		e.Reason = "this machine has no such call, so the kernel answers as to any unknown number"
	case row != nil && e.Verdict == Refused:
		e.Group, e.Reason = row.group, "standard refuses it too: "+row.reason
	case row != nil:
		e.Group, e.Reason = row.group, "standard refuses it: "+row.reason
	case profile == nil:
		e.Reason = "there is no filter"
	default:
		e.Reason = "the profile's rules say so"
	}
	return e, nil
}

// known reports whether call is a name that libseccomp, a table or the profile has.
func known(profile *specs.LinuxSeccomp, call string) bool {
	// libseccomp knows the calls of other machines, too, by negative numbers.
	if _, err := libseccomp.GetSyscallFromName(call); err == nil {
		return true
	}
	for _, b := range builtins() {
		if b.allowanceOf(call) != nil || b.refusalOf(call) != nil || b.conditionOf(call) != nil {
			return true
		}
	}
	return profile != nil && slices.ContainsFunc(profile.Syscalls, func(r specs.LinuxSyscall) bool { return slices.Contains(r.Names, call) })
}

// verdictOf looks at the rules only: alternatives that together cover all arguments are still
// conditions.
func verdictOf(profile *specs.LinuxSeccomp, call string) Verdict {
	number, exists := numberOf(call)
	switch {
	case !exists:
		return Refused
	case profile == nil:
		return Allowed
	case answersENOSYS(profile) && number > largest(profile):
		return Refused
	}
	some, all := permissive(profile.DefaultAction), permissive(profile.DefaultAction)
	for _, rule := range rulesOf(profile, call) {
		allows := permissive(rule.Action)
		if len(rule.Args) == 0 { // the only one
			some, all = allows, allows
		}
		some, all = some || allows, all && allows
	}
	switch {
	case all:
		return Allowed
	case some:
		return Conditional
	}
	return Refused
}

// refusalAnswer is what a call gets that passes no rule; with an allowing default, it is that
// of the first rule that refuses.
func refusalAnswer(profile *specs.LinuxSeccomp, call string) Decision {
	if number, exists := numberOf(call); !exists || answersENOSYS(profile) && number > largest(profile) {
		return noSuchCall
	}
	standing := decisionOf(profile.DefaultAction, profile.DefaultErrnoRet)
	for _, rule := range rulesOf(profile, call) {
		if refuses := !permissive(rule.Action); refuses && (len(rule.Args) == 0 || standing.Allowed()) {
			return decisionOf(rule.Action, rule.ErrnoRet)
		}
	}
	return standing
}
