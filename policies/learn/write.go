package learn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// Extended is what a document is when it extends another one.
type Extended struct {
	Parent, Own agent.Spec // the defaults that each sets
}

// Extend resolves a document that is in no file yet; it does not settings.
type Extend func(policies.Document) (Extended, error)

// Learned is what runs become.
type Learned struct {
	Document []byte   // YAML
	Filter   []byte   // docker's JSON format, which the document names; nil: it names a built-in one
	Unlisted []string // why the document has no list of programs; empty: it has one
	Unread   string   // why it has no list of reads although the observation asks for one
}

// Write makes the document. name is the document's, filter the path that it names its filter by.
func Write(o Observation, name, filter string, extend Extend) (Learned, error) {
	if agent.ValidateName(name) != nil || slices.Contains(policies.Levels, name) {
		return Learned{}, invalid("name the file after a word of letters, digits, '-', '_' and '.' that is no level", "%.64q is no name for a policy", name)
	}
	l := &learner{seen: o, why: map[string]string{}, filter: filter, extend: extend}
	l.doc = policies.Document{Head: policies.Head{Version: 1, Name: name, Description: l.description()}, Values: maps.Clone(o.Given.Values)}
	if err := l.narrow(); err != nil {
		return Learned{}, err
	}
	if err := l.programs(); err != nil {
		return Learned{}, err
	}
	l.reads()
	if err := l.choose(); err != nil {
		return Learned{}, err
	}
	text := l.text()
	if _, err := policies.Parse(text); err != nil {
		return Learned{}, &agent.Error{Kind: agent.KindInternal, Step: "learn", Message: "the document cannot be read", Err: err}
	}
	return Learned{Document: text, Filter: l.needs.Filter, Unlisted: l.unlisted, Unread: l.unread}, nil
}

// learner is a document on its way.
type learner struct {
	seen     Observation
	doc      policies.Document
	why      map[string]string // by key, or key and value: the comment beside it
	refused  []string          // targets that are not in the document
	unlisted []string          // reasons why there is no list of programs
	unread   string            // the reason why there is no list of reads
	needs    seccomp.Needs
	filter   string
	extend   Extend
	parent   policies.Document // what the extended document gives, in the form of Given
}

func (l *learner) description() string {
	r := l.seen.Runs[0]
	text := fmt.Sprintf("learned from %d runs of %s", len(l.seen.Runs), strings.Join(r.Command, " "))
	if len(l.seen.Runs) == 1 {
		text = fmt.Sprintf("learned from the run %s: %s", r.Name, strings.Join(r.Command, " "))
	}
	return cut(text, 200)
}

func cut(text string, most int) string {
	runes := []rune(document.Shown(text))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// narrow sets every value.
func (l *learner) narrow() error {
	for _, one := range l.seen.limits() {
		value, why := one.value()
		if value > 0 {
			one.set(&l.doc, value)
			l.why[one.key] = why
		}
	}
	// Any amount of swap stays; another amount counts with the memory that was learned.
	if l.doc.Text(settings.MemorySwap) != "-1" {
		l.doc.Set(settings.MemorySwap, "")
	}
	l.seen.files(&l.doc, l.why)
	l.seen.volumes(l.why)
	l.refused = l.seen.network(&l.doc, l.why)
	if !l.seen.CallsKnown {
		l.why["seccomp"] = "as the runs had: system calls were not observed"
		return nil
	}
	var uses []seccomp.Use
	without := seccomp.Without{SetID: writesHost(l.doc), MemoryFiles: true} // as a list of programs has it
	for _, c := range l.seen.Calls {
		without.MemoryFiles = without.MemoryFiles && c.Name != "memfd_create"
		uses = append(uses, seccomp.Use{Call: c.Name, Args: c.Args})
	}
	var err error
	if l.needs, err = seccomp.Least(uses, without); err != nil {
		return agent.Failed("learn", err)
	}
	l.doc.Set(settings.Seccomp, seccomp.Minimal)
	l.why["seccomp"] = "no call was made that it refuses"
	if l.needs.Filter != nil {
		l.doc.Set(settings.Seccomp, l.filter)
		l.why["seccomp"] = "minimal, and the groups that were used; the narrowest built-in filter that would do is " + l.needs.Within
	}
	return nil
}

// choose sets what the document extends, and the reasons for what it has beyond that.
func (l *learner) choose() error {
	// The widest level is no candidate: the document takes over the settings that it does not name.
	candidates := slices.Clone(policies.Levels[1:])
	slices.Reverse(candidates) // of equals, the narrowest
	if !slices.Contains(policies.Levels, l.seen.Under) {
		candidates = []string{l.seen.Under}
	}
	var fewest []settings.Difference
	var chosen *Extended
	for _, name := range candidates {
		resolved, more, err := l.beyond(name)
		if err != nil {
			return err
		}
		if chosen == nil || len(more) < len(fewest) {
			chosen, fewest, l.doc.Extends = &resolved, more, name
		}
	}
	l.parent, _ = Given(chosen.Parent)
	for _, difference := range fewest {
		if l.doc.Widen == nil {
			l.doc.Widen = map[string]string{}
		}
		l.doc.Widen[difference.Place] = l.reason()
	}
	return nil
}

// beyond lists where the document is wider than what it would extend.
func (l *learner) beyond(name string) (Extended, []settings.Difference, error) {
	d := l.doc
	d.Extends = name
	if l.needs.Filter != nil {
		d.Values = maps.Clone(d.Values)
		d.Set(settings.Seccomp, seccomp.Standard) // the file does not exist yet
	}
	resolved, err := l.extend(d)
	if err != nil {
		f := agent.FailureOf(err)
		return resolved, nil, &agent.Error{Kind: agent.KindOf(err), Message: "what was seen makes no policy: " + f.Message,
			Hint: cmp.Or(f.Hint, "name the file that clove run --learn wrote")}
	}
	if l.needs.Filter != nil {
		resolved.Own.Seccomp = agent.Seccomp{Profile: l.filter, Document: l.needs.Filter}
	}
	return resolved, settings.Wider(resolved.Parent, resolved.Own), nil
}

func (l *learner) reason() string {
	if len(l.seen.Runs) == 1 {
		return "used in the learned run " + l.seen.Runs[0].Name
	}
	return fmt.Sprintf("used in %d learned runs, such as %s", len(l.seen.Runs), l.seen.Runs[0].Name)
}

// IsReason reports whether a reason for a wider place is one that Write gives.
func IsReason(reason string) bool {
	return strings.HasPrefix(reason, "used in the learned run ") || strings.HasPrefix(reason, "used in ") && strings.Contains(reason, " learned runs, such as ")
}
