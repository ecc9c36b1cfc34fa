package broker

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// Bounds on the questions below a wildcard or under `public`. There the agent chooses what it asks
// for, and the servers of the zone read it: a name carries up to 250 bytes out. A build asks for
// some dozens of names, again and again. All such rules of a run share them.
const (
	wideQuestionsPerSecond = 100
	wideQuestionsBurst     = 1000
	// Of different names, at first and again in each hour.
	wideNames     = 500
	wideNameBytes = 16 << 10
	// wideNamesRemember bounds the names that are known not to be new.
	wideNamesRemember = 4096
)

// names bounds the names of the agent's own choice.
type names struct {
	now func() time.Time

	mu        sync.Mutex // guards the fields below
	questions *rate.Limiter
	fresh     *rate.Limiter // of different names
	bytes     *rate.Limiter // of their text
	known     map[egress.Name]bool
}

func newNames(now func() time.Time) *names {
	hourly := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(float64(n)/time.Hour.Seconds()), n) }
	return &names{now: now, questions: rate.NewLimiter(wideQuestionsPerSecond, wideQuestionsBurst), fresh: hourly(wideNames), bytes: hourly(wideNameBytes), known: map[egress.Name]bool{}}
}

// admit counts a question, and returns the bound that forbids it, "" if none does.
func (n *names) admit(name egress.Name) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	switch {
	case !n.questions.AllowN(now, 1):
		return fmt.Sprintf("more than %d questions a second", wideQuestionsPerSecond)
	case n.known[name]:
		return ""
	case n.fresh.TokensAt(now) < 1:
		return fmt.Sprintf("more than %d different names in an hour", wideNames)
	case !n.bytes.AllowN(now, len(name)):
		return fmt.Sprintf("different names of more than %d bytes in an hour", wideNameBytes)
	}
	n.fresh.AllowN(now, 1)
	if len(n.known) >= wideNamesRemember {
		clear(n.known)
	}
	n.known[name] = true
	return ""
}

// bound decides on a question that verdict allows: how many there may be, and with which bytes.
// The question counts if it may be asked.
func (b *Broker) bound(name egress.Name, verdict egress.Verdict, question traffic) egress.Verdict {
	if verdict.Wide {
		if bound := b.names.admit(name); bound != "" {
			return egress.Verdict{Rule: verdict.Rule, Source: verdict.Source, Reason: ReasonNames, Detail: bound + " under " + verdict.Rule,
				Hint: "give a rule for the name itself, --allow " + string(name) + ": such names are not bounded"}
		}
	}
	if !b.connections.charge(question) {
		return limited(wire.ReasonBytes)
	}
	return verdict
}
