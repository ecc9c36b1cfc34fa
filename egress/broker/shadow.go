package broker

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"clove.run/clove/egress"
)

// shadow applies other rules to what the broker's own allow, and counts what they would have
// refused. It returns no answer, so that it cannot change a decision. It is not asked about
// what the own rules refuse.
type shadow struct {
	rules atomic.Pointer[egress.Rules] // nil: nothing is asked
	*denials
}

func newShadow(rules *egress.Rules) *shadow {
	s := &shadow{denials: newDenials(nil)}
	s.rules.Store(rules)
	return s
}

// ReplaceShadow puts other rules in place of the shadow's.
func (b *Broker) ReplaceShadow(rules *egress.Rules) { b.shadow.rules.Store(rules) }

// name asks about a name that may be resolved.
func (s *shadow) name(name egress.Name, now time.Time) {
	if rules := s.rules.Load(); rules != nil {
		if verdict := rules.Resolve(name); !verdict.Allowed {
			s.refused(nameDecision(OutcomeDenied, name, verdict), now)
		}
	}
}

// shadowAnswers are the addresses of one reply that may be given. As for the own rules, a reply
// counts once.
type shadowAnswers struct {
	shadow  *shadow
	rules   *egress.Rules // nil: nothing is asked
	name    egress.Name
	now     time.Time
	refused *Decision
}

// answers begins with a reply for a name. If the name itself would have been refused, no
// address would have come.
func (s *shadow) answers(name egress.Name, now time.Time) *shadowAnswers {
	rules := s.rules.Load()
	if rules != nil && !rules.Resolve(name).Allowed {
		rules = nil
	}
	return &shadowAnswers{shadow: s, rules: rules, name: name, now: now}
}

func (a *shadowAnswers) add(addr netip.Addr) {
	if a.rules == nil {
		return
	}
	if verdict := a.rules.Answer(a.name, addr); !verdict.Allowed {
		d := nameDecision(OutcomeDenied, a.name, verdict)
		d.Address = netip.AddrPortFrom(addr, 0)
		a.refused = &d
	}
}

func (a *shadowAnswers) count() {
	if a.refused != nil {
		a.shadow.refused(*a.refused, a.now)
	}
}

// connection asks about a connection or flow that is to be made. One to an address that the
// agent has only from names that would have been refused follows from those, and does not
// count again.
func (s *shadow) connection(kind Kind, asked egress.Connection, now time.Time) {
	rules := s.rules.Load()
	if rules == nil {
		return
	}
	known := slices.DeleteFunc(slices.Clone(asked.Pinned), func(name egress.Name) bool {
		return !rules.Answer(name, asked.Target.Addr()).Allowed
	})
	follows := len(asked.Pinned) > 0 && len(known) == 0 ||
		asked.Shown != "" && slices.Contains(asked.Pinned, asked.Shown) && !slices.Contains(known, asked.Shown)
	asked.Pinned = known
	if verdict, asked := s.judge(rules, asked); !verdict.Allowed && !follows {
		s.refused(decisionOn(kind, OutcomeDenied, asked, verdict), now)
	}
}

// judge asks as the gate would: first without the first bytes of the client, and with them where
// the answer depends on them. A client whose first bytes were not read is taken for one that shows
// the name that it looked up: the gate reads them only where the own rules depend on the name.
// It returns the question that was decided, too.
func (s *shadow) judge(rules *egress.Rules, asked egress.Connection) (egress.Verdict, egress.Connection) {
	if asked.Proto == egress.UDP {
		return judge(rules, asked), asked
	}
	first := asked
	first.Shown, first.Looked = "", false
	verdict := rules.Connect(first)
	if !verdict.Allowed || verdict.Verify == egress.VerifyNone || !asked.Looked {
		return verdict, first
	}
	return judge(rules, asked), asked
}

func (s *shadow) refused(d Decision, now time.Time) {
	d.Time = now
	s.add(d)
}
