package grant

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"clove.run/clove/agent"
)

// Bounds of a grant.
const (
	IDMost     = 64      // bytes of an id, a holder and a giver
	ReasonMost = 256     // bytes
	UsesMost   = 1 << 52 // exact in JSON numbers of every language
	DepthMost  = 16      // parents above a grant
)

// Unlimited is UsesLeft of a grant that can be used any number of times.
const Unlimited = -1

// Grant is a right of one holder, as it is stored. The zero Grant allows nothing.
type Grant struct {
	ID       string    `json:"id"` // opaque, at most IDMost bytes
	Kind     Kind      `json:"kind"`
	Pattern  string    `json:"pattern"` // canonical, see Scope
	Rights   Rights    `json:"rights,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // in UTC; zero: never
	UsesLeft int64     `json:"uses_left"`        // Unlimited, or how often it can still be used
	Holder   string    `json:"holder"`           // the run's id
	Giver    string    `json:"giver"`            // the uid as uid:N, or the run's id
	Parent   string    `json:"parent,omitempty"` // the grant that it was derived from
	Depth    int       `json:"depth,omitempty"`  // how many parents are above it
	Reason   string    `json:"reason,omitempty"` // why it was given, for people
	Digest   string    `json:"digest,omitempty"` // of kind spawn: of the manifest that Pattern named when it was given
	Created  time.Time `json:"created"`          // in UTC
}

// Request is a grant to be made.
type Request struct {
	ID      string // of the new grant; the caller draws it
	Scope   Scope
	Expires time.Time // zero: never, or with the parent
	Uses    int64     // 0: any number, or as many as the parent has left
	Holder  string
	Giver   string
	Reason  string
}

// New returns a grant without a parent. Whether the giver may give it, and whether the
// holder's network may hold it, the caller decides. The error is of KindInvalid.
func New(want Request, now time.Time) (Grant, error) {
	if err := want.check(now); err != nil {
		return Grant{}, err
	}
	g := Grant{ID: want.ID, Kind: want.Scope.kind, Pattern: want.Scope.pattern, Rights: want.Scope.rights, Expires: inUTC(want.Expires), UsesLeft: want.Uses,
		Holder: want.Holder, Giver: want.Giver, Reason: want.Reason, Created: inUTC(now)}
	if g.UsesLeft == 0 {
		g.UsesLeft = Unlimited
	}
	return g, nil
}

// Scope parses the row's scope. An error means that the row is damaged.
func (g Grant) Scope() (Scope, error) { return NewScope(g.Kind, g.Pattern, g.Rights) }

// Expired reports whether the grant has ended at now: it does not last through Expires.
func (g Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// Spent reports whether no use is left.
func (g Grant) Spent() bool { return g.UsesLeft != Unlimited && g.UsesLeft <= 0 }

// check refuses a request whatever the giver holds.
func (r Request) check(now time.Time) error {
	switch {
	case r.Scope.kind == "":
		return invalid("the grant is for nothing", "write "+grammars[0].example)
	case r.Uses < Unlimited || r.Uses > UsesMost:
		return invalid(fmt.Sprintf("a grant cannot have %d uses", r.Uses), fmt.Sprintf("give it 1 to %d uses, or any number", int64(UsesMost)))
	case r.Scope.kind == Net && r.Uses > 0:
		return invalid("a net grant cannot have a number of uses, because the gate does not count them", "give it an expiry instead")
	case !r.Expires.IsZero() && !now.Before(r.Expires):
		return invalid("the grant would have expired already", "give it a later expiry")
	case r.Expires.After(now.Add(agent.ClockCeiling)):
		return invalid("the grant would expire in more than a hundred years", "leave the expiry out")
	}
	return r.checkWords()
}

// checkWords bounds what is stored and shown with the grant.
func (r Request) checkWords() error {
	for _, row := range []struct {
		what, text string
		least      int
		most       int
	}{{"id", r.ID, 1, IDMost}, {"holder", r.Holder, 1, IDMost}, {"giver", r.Giver, 1, IDMost}, {"reason", r.Reason, 0, ReasonMost}} {
		if len(row.text) < row.least || len(row.text) > row.most || !printable(row.text) {
			return invalid(fmt.Sprintf("the grant's %s cannot be %s", row.what, quote(row.text)),
				fmt.Sprintf("write %d to %d bytes of text on one line", row.least, row.most))
		}
	}
	return nil
}

// printable reports whether the text is safe in a line of a log.
func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// inUTC drops the monotonic clock, which means nothing in a row.
func inUTC(t time.Time) time.Time { return t.UTC().Round(0) }

func invalid(message, hint string) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: message, Hint: hint}
}
