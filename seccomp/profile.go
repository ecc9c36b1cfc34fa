package seccomp

import (
	"fmt"
	"slices"
	"strings"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The built-in profiles, from the widest to the narrowest.
const (
	Unconfined = "unconfined" // all calls but those that reach AF_ALG
	Standard   = "standard"   // what ordinary programs need
	Strict     = "strict"     // computing on files: no network, no shared IPC
	Minimal    = "minimal"    // one process that computes: no other process, no socket
)

// Names lists the built-in profiles, from the widest to the narrowest.
func Names() []string { return []string{Unconfined, Standard, Strict, Minimal} }

// Profile returns the built-in profile of that name, a fresh copy for the
// architecture of this program.
func Profile(name string) (*specs.LinuxSeccomp, error) {
	if name == Unconfined {
		return unconfined()
	}
	b, err := find(name)
	if err != nil {
		return nil, err
	}
	return b.build()
}

// find returns the tables of a built-in profile. The unconfined one has none.
func find(name string) (builtin, error) {
	for _, b := range builtins() {
		if b.name == name {
			return b, nil
		}
	}
	return builtin{}, fmt.Errorf("cannot find seccomp profile %q: the built-in ones are %s",
		name, strings.Join(Names(), ", "))
}

// builtin is a profile as tables: docker's list minus refusals, with conditions instead of
// docker's own. A refused name has no conditions. Each row has a group, a word by which
// people find it; rows of one group may have different reasons.
type builtin struct {
	name       string
	allowances []allowance // nil: all that docker allows
	refusals   []refusal
	conditions []condition
}

// allowance names system calls that a profile allows, some of them under conditions.
type allowance struct {
	group  string
	reason string // why a program needs them
	names  []string
}

// refusal removes system calls from a profile, or documents why they are not in it.
type refusal struct {
	group  string
	reason string // completes "refused because …"
	errno  uint   // 0: the default action, EPERM
	names  []string
}

// condition allows one system call only with certain arguments.
type condition struct {
	name    string
	group   string
	allowed string                    // completes "allowed for …"
	reason  string                    // why everything else is refused
	accept  [][]specs.LinuxSeccompArg // alternatives; within one, all comparisons must match
	// absent are alternatives that fail with absentErrno, as on a kernel without the
	// feature. They must not overlap with accept.
	absent      [][]specs.LinuxSeccompArg
	absentErrno unix.Errno
}

// builtins are made anew at each call, because ProfileWithout adds rows to them.
func builtins() []builtin {
	standard := builtin{name: Standard, refusals: slices.Concat(filterRefusals, standardRefusals), conditions: standardConditions()}
	strict := builtin{name: Strict, refusals: slices.Concat(standard.refusals, strictRefusals),
		conditions: narrow(standard.conditions, strictConditions(), strictRefusals)}
	return []builtin{standard, strict, minimal(strict)}
}

// narrow replaces conditions of a wider profile by narrower ones, and drops those of refused
// calls.
func narrow(wider, narrower []condition, refusals []refusal) []condition {
	var conditions []condition
	// The narrower rows come first, so they win over the wider ones of the same name.
	for _, c := range slices.Concat(narrower, wider) {
		replaced := slices.ContainsFunc(conditions, func(have condition) bool { return have.name == c.name })
		refused := slices.ContainsFunc(refusals, func(r refusal) bool { return slices.Contains(r.names, c.name) })
		if !replaced && !refused {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// allowanceOf returns the row that allows name, nil when there is none.
func (b builtin) allowanceOf(name string) *allowance {
	for i := range b.allowances {
		if slices.Contains(b.allowances[i].names, name) {
			return &b.allowances[i]
		}
	}
	return nil
}

// refusalOf returns the row that refuses name, nil when there is none.
func (b builtin) refusalOf(name string) *refusal {
	for i := range b.refusals {
		if slices.Contains(b.refusals[i].names, name) {
			return &b.refusals[i]
		}
	}
	return nil
}

// conditionOf returns the row that limits name, nil when there is none.
func (b builtin) conditionOf(name string) *condition {
	for i := range b.conditions {
		if b.conditions[i].name == name {
			return &b.conditions[i]
		}
	}
	return nil
}

func (b builtin) build() (*specs.LinuxSeccomp, error) {
	base, err := dockerDefault()
	if err != nil {
		return nil, fmt.Errorf("cannot build seccomp profile %q: %w", b.name, err)
	}
	eperm := uint(unix.EPERM)
	return &specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &eperm,
		// docker adds the 32-bit and x32 tables; the first entry is the native one.
		Architectures: base.Architectures[:min(1, len(base.Architectures))],
		// Empty but not nil: for nil, runc disables the mitigation of
		// speculative store bypass off (SPEC_ALLOW).
		Flags:    []specs.LinuxSeccompFlag{},
		Syscalls: b.rules(base.Syscalls),
	}, nil
}

// names are those that the profile lists as allowed, and those that other rows decide.
func (b builtin) names() (listed, others map[string]bool) {
	listed, others = map[string]bool{}, map[string]bool{}
	for _, a := range b.allowances {
		for _, name := range a.names {
			listed[name] = true
		}
	}
	for _, r := range b.refusals {
		for _, name := range r.names {
			others[name] = true
		}
	}
	for _, c := range b.conditions {
		others[c.name] = true
	}
	return listed, others
}

// rules removes the refusals from docker's unconditional rules and appends the tables' own rules.
func (b builtin) rules(docker []specs.LinuxSyscall) []specs.LinuxSyscall {
	var allowed []string
	listed, others := b.names()
	for _, rule := range docker {
		if rule.Action != specs.ActAllow || len(rule.Args) > 0 {
			continue // docker's own condition; the table replaces it
		}
		for _, name := range rule.Names {
			if (b.allowances == nil || listed[name]) && !others[name] {
				allowed = append(allowed, name)
			}
		}
	}
	// Sorted, so that the golden file does not change with the order of docker's rules.
	slices.Sort(allowed)
	rules := []specs.LinuxSyscall{{Names: slices.Compact(allowed), Action: specs.ActAllow}}
	for _, c := range b.conditions {
		for _, args := range c.accept {
			rules = append(rules, specs.LinuxSyscall{Names: []string{c.name}, Action: specs.ActAllow, Args: args})
		}
	}
	for _, c := range b.conditions {
		for _, args := range c.absent {
			errno := uint(c.absentErrno)
			rules = append(rules, specs.LinuxSyscall{Names: []string{c.name}, Action: specs.ActErrno, ErrnoRet: &errno, Args: args})
		}
	}
	for _, r := range b.refusals {
		// Without an errno of its own a refused call needs no rule: the default action
		// refuses it.
		if errno := r.errno; errno != 0 {
			rules = append(rules, specs.LinuxSyscall{Names: slices.Clone(r.names), Action: specs.ActErrno, ErrnoRet: &errno})
		}
	}
	return rules
}

// dockerDefault is docker's default profile for a container without capabilities on this
// architecture.
func dockerDefault() (*specs.LinuxSeccomp, error) {
	return moby.GetDefaultProfile(withoutCapabilities())
}

// withoutCapabilities is the process that conditional profiles are resolved for: no agent
// has a capability on the host.
func withoutCapabilities() *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
}
