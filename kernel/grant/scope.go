package grant

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// PatternMost bounds a pattern, in bytes, as it was given and in canonical form.
const PatternMost = 512

// Scope is what a grant is for, parsed: a kind, a canonical pattern and rights. Parse and
// NewScope make one. The zero Scope covers nothing, not even itself.
type Scope struct {
	kind    Kind
	pattern string
	rights  Rights
	target  egress.Target // of a net scope
}

// Kind, Pattern and Rights are the parts of the canonical text.
func (s Scope) Kind() Kind { return s.kind }

// Pattern is in canonical form.
func (s Scope) Pattern() string { return s.pattern }

// Rights is NoRights for the kinds that have none.
func (s Scope) Rights() Rights { return s.rights }

// Target is what a net scope names.
func (s Scope) Target() egress.Target { return s.target }

// String is the canonical text; Parse returns the same Scope for it.
func (s Scope) String() string {
	text := string(s.kind) + ":" + s.pattern
	if s.rights != NoRights {
		text += ":" + string(s.rights)
	}
	return text
}

// Parse reads KIND:PATTERN[:RIGHTS]. A text that ends in :ro or :rw has rights, whatever
// its kind: a kind without these rights refuses it. The error is of KindInvalid, and its hint
// shows a scope of the right form.
func Parse(text string) (Scope, error) {
	kind, pattern, found := strings.Cut(text, ":")
	if !found {
		return Scope{}, wrong(text, refuse("it has no kind"), grammars[0].example)
	}
	pattern, rights := Kind(kind).splitRights(pattern)
	return NewScope(Kind(kind), pattern, rights)
}

// NewScope is Parse for parts that are separate already.
func NewScope(kind Kind, pattern string, rights Rights) (Scope, error) {
	given := Scope{kind: kind, pattern: pattern, rights: rights}
	g := kind.grammar()
	if g == nil {
		return Scope{}, wrong(given.String(), hinted(refuse("there is no kind %s", quote(string(kind))), "the kinds are "+kindList()), "")
	}
	s := given
	err := checkText(pattern)
	if err == nil {
		err = s.setRights(g)
	}
	if err == nil {
		s.pattern, err = g.parse(&s, pattern)
	}
	if err != nil {
		return Scope{}, wrong(given.String(), err, g.example)
	}
	return s, nil
}

// setRights fills in the narrowest rights: a short scope errs on the safe side.
func (s *Scope) setRights(g *grammar) *refusal {
	switch {
	case g.rights == nil && s.rights != NoRights:
		return refuse("a grant of kind %s has no rights", s.kind)
	case g.rights != nil && s.rights == NoRights:
		s.rights = g.rights[0]
	case g.rights != nil && !slices.Contains(g.rights, s.rights):
		last := g.rights[len(g.rights)-2:]
		return refuse("the rights are %s or %s, not %s", last[0], last[1], quote(string(s.rights)))
	}
	return nil
}

// Covers reports whether s allows everything that narrow allows. It may report false where
// that is so but cannot be decided, never the reverse.
func (s Scope) Covers(narrow Scope) bool {
	g := s.kind.grammar()
	return g != nil && s.kind == narrow.kind && s.rights.covers(narrow.rights) && g.covers(s, narrow)
}

// Concrete reports whether s can be a request: it means one tool, one path, one endpoint.
// A net scope without a port means 80 and 443 and is a request for both.
func (s Scope) Concrete() bool {
	g := s.kind.grammar()
	return g != nil && (g.concrete == nil || g.concrete(s))
}

// Allows reports whether what is a concrete request that s covers.
func (s Scope) Allows(what Scope) bool { return what.Concrete() && s.Covers(what) }

// checkText refuses what must not appear in any pattern, or in a line of a log.
// unicode.IsPrint also excludes marks of direction, joiners and all spaces but one.
func checkText(text string) *refusal {
	switch {
	case text == "":
		return refuse("the pattern is empty")
	case len(text) > PatternMost:
		return refuse("the pattern has %d bytes, at most %d are allowed", len(text), PatternMost)
	case !utf8.ValidString(text):
		return refuse("the pattern is not UTF-8")
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return refuse("the pattern holds %+q, which cannot be printed", r)
		}
	}
	return nil
}

// refusal says why a text is no scope. Its reason completes a sentence about the text.
type refusal struct{ reason, hint string }

func refuse(format string, args ...any) *refusal {
	return &refusal{reason: fmt.Sprintf(format, args...)}
}

func hinted(r *refusal, hint string) *refusal {
	r.hint = hint
	return r
}

// wrong is the error of Parse: without a better hint, it shows the example.
func wrong(text string, r *refusal, example string) error {
	hint := r.hint
	if hint == "" {
		hint = "write KIND:PATTERN[:RIGHTS], for example " + example
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("cannot use %s as a grant: %s", quote(text), r.reason), Hint: hint}
}

// quote shows untrusted text escaped and shortened.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%+q…", text[:most])
	}
	return fmt.Sprintf("%+q", text)
}

func kindList() string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}
