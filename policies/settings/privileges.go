package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/host"
	"clove.run/clove/seccomp"
)

// Names of privileges that code asks for.
const (
	CapDrop         = "cap-drop"
	Seccomp         = "seccomp"
	AllowUnenforced = "allow-unenforced"
)

// Privileges are capabilities of root inside. Any other user has none.
var Privileges = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{{
		Flag: CapDrop, Key: "capabilities.drop", Form: List, Flags: Join, Extends: Union, Group: GroupWalls,
		Usage: "take a capability from root inside, or ALL; any other user has none",
		Pod:   "omit it: a pod's agent has none",
		Doc:   "names such as CHOWN, or ALL",
		Read:  each(readCapDrop), Write: func(s agent.Spec) []string { return s.CapDrop }, Wider: widerCapabilities,
	}}}
})

// Filter is the filter of system calls.
var Filter = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{{
		Flag: Seccomp, Key: "seccomp", Group: GroupWalls,
		Usage: "system call filter: standard, strict, minimal, unconfined or a FILE in docker's format",
		Say:   func(s agent.Spec) string { return s.Seccomp.Profile },
		Doc:   "the filter of system calls: unconfined, standard, strict, minimal, or the path of a file in docker's JSON format",
		Read:  one(readSeccomp), Write: func(s agent.Spec) []string { return texts(s.Seccomp.Profile) }, Wider: widerFilter,
	}}}
})

// Weaken are controls that may be missing. Package runtime knows which have a weaker form, and
// refuses the others before it makes anything.
var Weaken = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{{
		Flag: AllowUnenforced, Key: "allow_unenforced", Form: List, Flags: Join, Group: GroupWalls,
		Usage: "run although this host cannot enforce this control; it is recorded",
		Pod:   "on a node every limit is enforced, or the pod fails",
		Doc:   "controls that may be missing on this host, as clove run --allow-unenforced",
		Read:  func(r *Reader, texts []string) error { r.Spec.AllowUnenforced = texts; return nil },
		Write: func(s agent.Spec) []string { return s.AllowUnenforced },
		Wider: func(base, wide agent.Spec) []Difference {
			return beyond(base.AllowUnenforced, wide.AllowUnenforced, slices.Contains)
		},
	}}}
})

func readCapDrop(r *Reader, text string) error {
	name := strings.ToUpper(text)
	if name != agent.AllCapabilities && !strings.HasPrefix(name, "CAP_") {
		name = "CAP_" + name
	}
	if name != agent.AllCapabilities && !slices.Contains(agent.Capabilities, name) {
		return Invalid(CapDrop, document.Meant(name, agent.Capabilities, "write ALL, or a name of capabilities(7) such as CHOWN"), "%q is not a capability", text)
	}
	if !slices.Contains(r.Spec.CapDrop, name) {
		r.Spec.CapDrop = append(r.Spec.CapDrop, name)
	}
	return nil
}

// widerCapabilities: they are root's only.
func widerCapabilities(base, wide agent.Spec) []Difference {
	dropped := func(s agent.Spec, name string) bool {
		return slices.Contains(s.CapDrop, name) || slices.Contains(s.CapDrop, agent.AllCapabilities)
	}
	var extra []string
	for _, name := range agent.Capabilities {
		if dropped(base, name) && !dropped(wide, name) {
			extra = append(extra, name)
		}
	}
	return more(wide.User.UID == 0 && len(extra) > 0, "without them", list(extra))
}

// readSeccomp puts a profile's text into the spec, because the file may change before a later
// start of the run.
func readSeccomp(r *Reader, name string) error {
	// Names come first, so that a file called "strict" in the working directory changes
	// nothing.
	if slices.Contains(seccomp.Names(), name) {
		r.Spec.Seccomp = agent.Seccomp{Profile: name}
		return nil
	}
	path := r.Host.Absolute(name)
	document, err := host.ReadBounded(path, seccomp.MaxDocumentBytes)
	if err == nil {
		_, err = seccomp.Parse(document)
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--" + Seccomp, Message: fmt.Sprintf("cannot use %q", name),
			Hint: "it takes " + strings.Join(seccomp.Names(), ", ") + " or a file in docker's JSON format", Err: err}
	}
	r.Spec.Seccomp = agent.Seccomp{Profile: path, Document: document}
	return nil
}

// widerFilter goes by the order of the built-in profiles, each of which allows what the next
// one allows; documents are compared call by call.
func widerFilter(b, w agent.Spec) []Difference {
	names := seccomp.Names()
	from, to := slices.Index(names, b.Seccomp.Profile), slices.Index(names, w.Seccomp.Profile)
	if len(b.Seccomp.Document)+len(w.Seccomp.Document) == 0 && from >= 0 && to >= 0 {
		return more(to < from, b.Seccomp.Profile, w.Seccomp.Profile)
	}
	base, berr := profileOf(b.Seccomp)
	wide, werr := profileOf(w.Seccomp)
	if berr != nil || werr != nil {
		return more(true, cmp.Or(b.Seccomp.Profile, "none"), w.Seccomp.Profile)
	}
	calls := moreCalls(base, wide)
	return more(len(calls) > 0, b.Seccomp.Profile, fmt.Sprintf("%s, with %s", w.Seccomp.Profile, few(calls)))
}

// moreCalls are those that wide allows and base does not, or with further arguments. Those that
// no table has yet are decided by the default.
func moreCalls(base, wide *specs.LinuxSeccomp) (more []string) {
	unnamed := func(p *specs.LinuxSeccomp) bool {
		return p == nil || seccomp.Decision{Action: p.DefaultAction}.Allowed()
	}
	if unnamed(wide) && !unnamed(base) {
		more = append(more, "calls that it does not name")
	}
	compared := seccomp.Compare(base, wide)
	for _, d := range slices.Concat(compared.OnlyB, compared.Other) {
		// A call that base allows with all arguments can only be narrower.
		if d.A != seccomp.Allowed && !seccomp.Narrower(base, wide, d.Call) {
			more = append(more, d.Call)
		}
	}
	return more
}

// profileOf is nil for the unconfined profile.
func profileOf(s agent.Seccomp) (*specs.LinuxSeccomp, error) {
	if len(s.Document) > 0 {
		return seccomp.Parse(s.Document)
	}
	return seccomp.Profile(s.Profile)
}

// few are the first of many names of calls.
func few(calls []string) string {
	const most = 8
	if len(calls) > most {
		return fmt.Sprintf("%s and %d more calls", strings.Join(calls[:most], " "), len(calls)-most)
	}
	return strings.Join(calls, " ")
}
