package expect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api/agents"
	"clove.run/clove/egress"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
	"clove.run/clove/runtime"
)

// Result is one entry with its answer.
type Result struct {
	Action Kind       `json:"action"`
	What   string     `json:"what"`
	Args   []Argument `json:"args,omitempty"`
	Is     Answer     `json:"is"`  // what is expected
	Got    Answer     `json:"got"` // what is decided, or was found
	OK     bool       `json:"ok"`
	By     string     `json:"by"` // what decided
	Note   string     `json:"note,omitempty"`
}

func (e Entry) result(got Answer, by string) Result {
	kind, what := e.Action()
	return Result{Action: kind, What: what, Args: e.Args, Is: e.Is, Got: got, OK: got == e.Is, By: by, Note: e.Note}
}

// Decider answers for one policy.
type Decider struct {
	spec       agent.Spec
	rules      *egress.Rules
	grants     []grant.Scope
	prediction *runtime.Prediction
}

// NewDecider prepares the answers for the spec of a policy.
func NewDecider(spec agent.Spec) (*Decider, error) {
	d := &Decider{spec: spec}
	var err error
	if d.rules, err = settings.Rules(spec); err != nil {
		return nil, err
	}
	if d.prediction, err = runtime.Predict(spec); err != nil {
		return nil, err
	}
	for _, text := range spec.Kernel.Grants {
		scope, err := grant.Parse(text)
		if err != nil {
			return nil, err
		}
		d.grants = append(d.grants, scope)
	}
	return d, nil
}

// Decide answers every entry, or returns the first one's mistake.
func (d *Decider) Decide(entries []Entry) ([]Result, error) {
	results := make([]Result, 0, len(entries))
	for i, e := range entries {
		allowed, by, err := d.answer(e)
		if err != nil {
			return nil, at(i, err)
		}
		results = append(results, e.result(answerOf(allowed), by))
	}
	return results, nil
}

func answerOf(allowed bool) Answer {
	if allowed {
		return Allow
	}
	return Deny
}

func (d *Decider) answer(e Entry) (allowed bool, by string, err error) {
	switch kind, what := e.Action(); kind {
	case Connect:
		return d.connect(what)
	case Syscall:
		return d.prediction.Call(what, e.Arguments())
	case Tool, Model:
		return d.granted(kind, what)
	case Call:
		return d.calls(what)
	default:
		access, err := d.prediction.File(what)
		allowed = map[Kind]bool{Read: access.Read, Write: access.Write, Exec: access.Execute}[kind]
		if kind == Exec && access.Read && !access.Execute {
			access.By += d.unexecuted(what)
		}
		return allowed, access.By, err
	}
}

// unexecuted says why nothing is executed at a path that can be read.
func (d *Decider) unexecuted(at string) string {
	if d.spec.Files.MayExecute(path.Clean(at)) {
		return ", where nothing is executed"
	}
	return ", and not in the list files.execute"
}

// connect asks the rules, and then the filter, without which there is no socket to connect.
func (d *Decider) connect(target string) (bool, string, error) {
	to, err := resolve.ParseEndpoint(target)
	if err != nil {
		return false, "", err
	}
	findings, err := d.rules.Why(to.Host, to.Port, to.Proto)
	if err != nil {
		return false, "", err
	}
	v := findings[len(findings)-1].Verdict
	by := cmp.Or(v.Rule, v.Reason)
	switch {
	case !v.Allowed:
		by = cmp.Or(v.Detail, by)
	case v.Source != "":
		by += " (" + v.Source + ")"
	}
	if !v.Allowed {
		return false, by, nil
	}
	kind := uint64(unix.SOCK_STREAM)
	if to.Proto == egress.UDP {
		kind = unix.SOCK_DGRAM
	}
	if open, filter, err := d.socket(unix.AF_INET, kind); err != nil || !open {
		return false, filter, err
	}
	return true, by, nil
}

// socket asks the filter for socket(2).
func (d *Decider) socket(family, kind uint64) (open bool, by string, err error) {
	open, by, err = d.prediction.Call("socket", [6]uint64{family, kind})
	return open, "no socket: " + by, err
}

// calls asks for every grant that a call needs, as the engine does.
func (d *Decider) calls(text string) (allowed bool, by string, err error) {
	named, err := named(text)
	if err != nil {
		return false, "", err
	}
	if len(named) == 0 {
		open, filter, err := d.socket(unix.AF_UNIX, unix.SOCK_STREAM)
		if open {
			filter = "it needs no grant"
		}
		return open, filter, err
	}
	var rules []string
	for _, what := range named {
		kind, name, _ := strings.Cut(what, ":")
		if allowed, by, err = d.granted(Kind(kind), name); err != nil || !allowed {
			return false, by, err
		}
		rules = append(rules, by)
	}
	return true, strings.Join(rules, ", "), nil
}

// named returns what a call names that grants must cover, from its method's own declaration.
func named(text string) ([]string, error) {
	method, params, _ := strings.Cut(text, " ")
	row, known := agents.Find(method)
	if !known {
		return nil, invalid("clove api list shows them", "there is no method %.64q for agents", method)
	}
	value, err := row.Decode(json.RawMessage(cmp.Or(params, "{}")))
	if err != nil {
		return nil, invalid("docs/api.md has its parameters", "%s: %v", method, err)
	}
	if p, names := value.(interface{ Names() []string }); names {
		return p.Names(), nil
	}
	return nil, nil
}

// granted looks for a grant that covers the name. The agent asks for what it is granted
// through its own socket.
func (d *Decider) granted(kind Kind, name string) (bool, string, error) {
	what, err := grant.Parse(string(kind) + ":" + name)
	if err != nil {
		return false, "", err
	}
	if !what.Concrete() {
		return false, "", invalid("name one "+string(kind), "%.64q is a pattern", name)
	}
	for _, scope := range d.grants {
		if !scope.Allows(what) {
			continue
		}
		if open, filter, err := d.socket(unix.AF_UNIX, unix.SOCK_STREAM); err != nil || !open {
			return false, filter, err
		}
		return true, "grant " + scope.String(), nil
	}
	return false, fmt.Sprintf("no grant covers %s", what), nil
}
