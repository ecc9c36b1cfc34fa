package host

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/undo"
	"clove.run/clove/netns"
)

// guard enforces the network rules of one OCI container.
type guard struct {
	order     agent.Guard
	namespace *netns.Namespace
	container *pidfd.Process // its first process
	gate      *Gate          // nil: mode none needs none
	undo      undo.Stack
}

// Guard applies the rules of an OCI container, calls held, and stays until the
// container's first process or the gate has ended. program is the path of
// clove-gate. After Guard has returned the rules stand, and no gate serves them:
// the container has no network. `clove-oci delete` removes them.
//
// If the error comes before held, the rules stay: they allow no traffic, the next Guard
// for the same container completes them, and delete removes them. Decision 35 (docs/decisions)
// says why the rules outlive the guard.
func Guard(ctx context.Context, program string, order agent.Guard, held func()) error {
	g := &guard{order: order}
	if err := g.begin(program); err != nil {
		return errors.Join(err, g.undo.Run())
	}
	held()
	if g.gate == nil {
		return nil
	}
	return g.stay(ctx)
}

func (g *guard) begin(program string) (err error) {
	rules, err := g.rules()
	if err != nil {
		return err
	}
	if g.namespace, g.container, err = netns.OpenProcess(g.order.PID, g.order.Start); err != nil {
		return g.refused(err, "the container needs a network namespace of its own, which the host's user namespace owns")
	}
	g.undo.Add("namespace", g.namespace.Close)
	g.undo.Add("process", g.container.Close)
	// Before the gate: from here on nothing leaves the container past the rules, and
	// without a gate nothing leaves at all.
	if err := g.apply(); err != nil {
		return err
	}
	if g.order.Network == agent.NetworkNone {
		return nil
	}
	servers, err := g.servers()
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		writeLine(nameless)
	}
	none := func() error { return nil }
	g.gate, err = start(g.config(program, rules), leg{socket: g.namespace.Socket, resolver: g.resolver(servers), close: none})
	if err != nil {
		return err
	}
	g.undo.Add("gate", g.gate.Stop)
	return nil
}

// guardLimits bound what one container costs the node outside of its own limits. A
// container is often a server that calls others, and needs more than an agent does.
var guardLimits = agent.EgressLimits{Connections: 4096, PerSecond: 1000}

func (g *guard) config(program string, rules *egress.Rules) Config {
	return Config{Program: program, ID: agent.GuardGateID(os.Getpid()), Namespace: g.namespace, Rules: rules, Limits: guardLimits, Denied: logDenials()}
}

// nameless is logged when there is no name server to ask. The container starts all
// the same, because addresses may be all that it needs.
var nameless = logLine{Reason: "no name resolves: there is no name server, or only at addresses of loopback",
	Hint: "mount a resolv.conf with name servers read-only at /etc/resolv.conf, or allow addresses"}

// rules are checked before anything is done.
func (g *guard) rules() (*egress.Rules, error) {
	if g.order.Network == agent.NetworkHost {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "network", Message: "no rule is enforced in mode host", Hint: "use none, allowlist or public"}
	}
	return egress.New(egress.Config{Mode: g.order.Network, Rules: g.order.Rules, IsHost: g.isHost})
}

// isHost counts the node's addresses and the namespace's own. If the namespace's addresses
// cannot be read, the address counts as its own.
func (g *guard) isHost(addr netip.Addr) bool {
	if Owns(addr) {
		return true
	}
	owned, err := g.namespace.Owns(addr)
	return err != nil || owned
}

// apply first writes what it is going to do into the container's directory, so
// that delete can take it back whatever happens to this process.
func (g *guard) apply() error {
	identity, err := g.namespace.Identity()
	if err != nil {
		return err
	}
	plan, err := netns.EnginePlan(g.namespace, g.order.Network != agent.NetworkNone, g.order.Owner(), g.order.Policy())
	if err != nil {
		return g.refused(err, "")
	}
	state := agent.GuardState{Namespace: identity, Owner: g.order.Owner()}
	if g.order.Network != agent.NetworkNone {
		state.PID = os.Getpid()
		if state.Start, err = pidfd.StartTime(state.PID); err != nil {
			return err
		}
	}
	if err := agent.WriteGuardState(g.order.Directory, state); err != nil {
		return err
	}
	err = plan.Apply(g.namespace)
	if errors.Is(err, netns.ErrRuled) {
		return g.refused(err, "give each container with network annotations a namespace of its own; in a pod they belong to the pod")
	}
	if err != nil {
		return g.refused(err, "")
	}
	return g.refused(g.confirm(), "")
}

// confirm removes the rules again if the container has ended: its delete may have
// looked for them before they existed, and a named namespace outlives it.
func (g *guard) confirm() error {
	if !g.container.Ended() {
		return nil
	}
	return errors.Join(errors.New("the container's process has ended"), g.namespace.Clear(g.order.Owner()))
}

func (g *guard) refused(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "network", Message: "cannot enforce the container's network rules", Hint: hint, Err: err}
}

// logLine is a line of the guard's log.
type logLine struct {
	*agent.Denial
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

// writeLine writes to standard error, which is the guard's log. An error, such as a full
// disk, is ignored: the rules are enforced without a log.
func writeLine(l logLine) { _ = json.NewEncoder(os.Stderr).Encode(l) }

// logDenials logs the first denial of each target.
func logDenials() func(d agent.Denial, reason, hint string) {
	var mu sync.Mutex // so that lines do not mix
	return func(d agent.Denial, reason, hint string) {
		mu.Lock()
		defer mu.Unlock()
		writeLine(logLine{&d, reason, hint})
	}
}

// stay returns when the container or the gate has ended.
func (g *guard) stay(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.container.Wait(context.Background())
	}()
	select {
	case <-ended:
		return g.gate.Stop()
	case reason := <-g.gate.Lost():
		return errors.Join(errors.New("the gate is lost, and the container has no network any more"), g.gate.Reason(reason))
	case <-ctx.Done():
		return errors.Join(ctx.Err(), g.gate.Stop())
	}
}
