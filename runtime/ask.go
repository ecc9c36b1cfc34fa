package runtime

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
)

// asker lets people decide over targets that no rule covers. Equal questions are one, and different ones
// do not wait for each other.
type asker struct {
	owner agent.Owner
	// ask puts the question, and returns when it is answered or ctx ends. rule is what a yes
	// would allow. The rules that it returns hold from now on; nil: it is no.
	ask func(ctx context.Context, rule agent.EgressRule) *egress.Rules
	// held is called for a connection that waits for the answer to another's question.
	held func()

	mu   sync.Mutex // guards open
	open map[string]*asking
}

// asking is a question that waits. It ends with the last connection that waits for its answer.
type asking struct {
	done  chan struct{} // closed when there is an answer
	rules *egress.Rules
	end   context.CancelFunc
	first atomic.Bool // rules for one connection are not taken yet
	waits int         // connections; guarded by asker.mu
}

// decide returns the rules that hold from now on, or nil if what was refused stays so. A target
// that a rule denies is not asked about.
func (a *asker) decide(ctx context.Context, d broker.Decision) *egress.Rules {
	target := askedTarget(d)
	if target == "" {
		return nil
	}
	rule := agent.EgressRule{Target: target, Source: "ask"}
	if CheckRule(rule, a.owner) != nil {
		return nil
	}
	q := a.joined(ctx, target, rule)
	select {
	case <-q.done:
		if q.rules.AreForOne() && !q.first.CompareAndSwap(true, false) { // another connection has them
			return a.decide(ctx, d)
		}
		return q.rules
	case <-ctx.Done():
		a.left(target, q)
		return nil
	}
}

// joined is the question about a target, which one more connection waits for. It is not of the first one alone, whose client
// may go.
func (a *asker) joined(ctx context.Context, target string, rule agent.EgressRule) *asking {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.open[target]; q != nil {
		q.waits++
		a.held()
		return q
	}
	q := &asking{done: make(chan struct{}), waits: 1}
	q.first.Store(true)
	ctx, q.end = context.WithCancel(context.WithoutCancel(ctx))
	a.open[target] = q
	go func() {
		defer q.end()
		q.rules = a.ask(ctx, rule)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.forget(target, q)
		close(q.done)
	}()
	return q
}

// left ends a question that no connection waits for any more. The same target is then asked about anew.
func (a *asker) left(target string, q *asking) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.waits--; q.waits == 0 {
		a.forget(target, q)
		q.end()
	}
}

// forget requires a.mu.
func (a *asker) forget(target string, q *asking) {
	if a.open[target] == q {
		delete(a.open, target)
	}
}

// atTerminal lets a person at the terminal of the run decide. What is answered holds for the
// rest of the run.
type atTerminal struct {
	owner agent.Owner
	ask   func(ctx context.Context, rule agent.EgressRule) bool

	turn    chan struct{} // holds one element while no question is open; guards the fields below
	spec    agent.Spec
	answers map[string]bool
}

func newAtTerminal(spec agent.Spec, owner agent.Owner, ask func(context.Context, agent.EgressRule) bool) *atTerminal {
	spec.Egress.Rules = slices.Clone(spec.Egress.Rules)
	t := &atTerminal{spec: spec, owner: owner, ask: ask, turn: make(chan struct{}, 1), answers: map[string]bool{}}
	t.turn <- struct{}{}
	return t
}

func (t *atTerminal) decide(ctx context.Context, rule agent.EgressRule) *egress.Rules {
	select {
	case <-t.turn:
		defer func() { t.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil
	}
	rule.Source = "--learn-network ask"
	allowed, known := t.answers[rule.Target]
	if !known {
		allowed = t.ask(ctx, rule)
		if ctx.Err() != nil {
			return nil
		}
		t.answers[rule.Target] = allowed
		if allowed {
			t.spec.Egress.Rules = append(t.spec.Egress.Rules, rule)
		}
	}
	if !allowed {
		return nil
	}
	rules, err := rulesOf(t.spec, t.owner)
	if err != nil {
		return nil
	}
	return rules
}

// people lets those decide who answer to the kernel's questions. What they allow is a grant of the run, or this one
// connection.
func people(ctx context.Context, l *launch, rule agent.EgressRule) *egress.Rules {
	s := l.share
	answer, err := s.question(ctx, api.ApprovalAskParams{Kind: api.ApproveNet, What: "connect to " + rule.Target, Rule: rule.Target})
	if err != nil || answer.State != api.ApprovalAllowed {
		return nil
	}
	if answer.Once {
		return once(l, rule, answer.ID)
	}
	return s.force.until(ctx, answer.Grant)
}

// once are the rules of one connection that people have allowed.
func once(l *launch, rule agent.EgressRule, approval string) *egress.Rules {
	spec := l.spec
	rule.Source = "approval " + approval
	spec.Egress.Rules = slices.Concat(spec.Egress.Rules, l.share.force.now(), []agent.EgressRule{rule})
	rules, err := rulesOf(spec, l.streams.Owner)
	if err != nil {
		return nil
	}
	return rules.ForOne()
}

// inForce are the rules of a run's grants that its gate enforces.
type inForce struct {
	mu      sync.Mutex // guards the fields below
	granted []agent.EgressRule
	rules   *egress.Rules
	changed chan struct{} // closed with the next change
}

// set notes what is enforced from now on.
func (f *inForce) set(granted []agent.EgressRule, rules *egress.Rules) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.granted, f.rules = granted, rules
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// now are the rules of grants in force.
func (f *inForce) now() []agent.EgressRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.granted)
}

// until waits until the gate enforces the rule of a grant, and returns all rules; nil: ctx has ended.
func (f *inForce) until(ctx context.Context, grant string) *egress.Rules {
	for {
		f.mu.Lock()
		if slices.ContainsFunc(f.granted, func(r agent.EgressRule) bool { return r.Source == "grant "+grant }) {
			defer f.mu.Unlock()
			return f.rules
		}
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// asks chooses where the questions of a launch go; nil: what no rule covers is refused.
func (l *launch) asks() func(context.Context, broker.Decision) *egress.Rules {
	a := &asker{owner: l.streams.Owner, held: func() {}, open: map[string]*asking{}}
	switch {
	case l.streams.AskNetwork != nil:
		a.ask = newAtTerminal(l.spec, l.streams.Owner, l.streams.AskNetwork).decide
	case l.spec.Kernel.People(agent.AskNet) > 0 && l.share != nil:
		a.ask, a.held = func(ctx context.Context, rule agent.EgressRule) *egress.Rules { return people(ctx, l, rule) }, l.share.questions.held
	default:
		return nil
	}
	return a.decide
}

// askedTarget is the narrowest rule that would allow what was refused; empty: nothing would.
func askedTarget(d broker.Decision) string {
	host := d.Name
	if host == "" && len(d.Pinned) > 0 {
		host = string(d.Pinned[0])
	}
	switch {
	case d.Kind != broker.KindTCP && d.Kind != broker.KindUDP || !d.Address.IsValid():
		return ""
	case host == "":
		host = d.Address.Addr().String()
	}
	target := net.JoinHostPort(host, strconv.Itoa(int(d.Address.Port())))
	if d.Kind == broker.KindUDP {
		return fmt.Sprintf("udp://%s", target)
	}
	return target
}
