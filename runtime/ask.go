package runtime

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
)

// asker lets a person decide over targets that the rules refuse. What is answered holds for the
// rest of the run.
type asker struct {
	spec  agent.Spec
	owner agent.Owner
	// ask puts the question, and returns when it is answered or ctx ends. rule is what a yes
	// would allow.
	ask func(ctx context.Context, rule agent.EgressRule) bool

	turn    chan struct{} // holds one element while no question is open; guards answers and spec.Egress.Rules
	answers map[string]bool
}

// newAsker returns nil if the run's policy does not ask.
func newAsker(spec agent.Spec, streams IO) *asker {
	if streams.AskNetwork == nil {
		return nil
	}
	spec.Egress.Rules = slices.Clone(spec.Egress.Rules)
	a := &asker{spec: spec, owner: streams.Owner, ask: streams.AskNetwork, turn: make(chan struct{}, 1), answers: map[string]bool{}}
	a.turn <- struct{}{}
	return a
}

// decide returns the rules that hold from now on, or nil if what was refused stays so. A target
// that a rule denies is not asked about.
func (a *asker) decide(ctx context.Context, d broker.Decision) *egress.Rules {
	target := askedTarget(d)
	if target == "" || d.Reason != egress.ReasonNoRule && d.Reason != egress.ReasonPort {
		return nil
	}
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil
	}
	allowed, known := a.answers[target]
	rule := agent.EgressRule{Target: target, Source: "--learn-network ask"}
	wider := a.spec
	wider.Egress.Rules = append(slices.Clone(a.spec.Egress.Rules), rule)
	if !known {
		if CheckRule(rule, a.owner) != nil {
			return nil
		}
		allowed = a.ask(ctx, rule)
		if ctx.Err() != nil {
			return nil
		}
		a.answers[target] = allowed
		if allowed {
			a.spec = wider
		}
	}
	if !allowed {
		return nil
	}
	rules, err := rulesOf(a.spec, a.owner)
	if err != nil {
		return nil
	}
	return rules
}

// askedTarget is the narrowest rule that would allow what was refused; a name that is looked up
// means its ports 80 and 443.
func askedTarget(d broker.Decision) string {
	host := d.Name
	if host == "" && len(d.Pinned) > 0 {
		host = string(d.Pinned[0])
	}
	switch {
	case d.Kind == broker.KindDNS:
		return host
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
