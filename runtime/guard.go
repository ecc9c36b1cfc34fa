package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/undo"
	"clove.run/clove/netns"
)

// guard holds an engine's container to its network rules.
type guard struct {
	agent.Guard
	namespace *netns.Namespace
	process   *pidfd.Process // the container's first
	gate      *gate          // nil: mode none needs none
	undo      undo.Stack
}

// Guard makes the rules hold that order asks for, calls held, and stays until
// the container's first process or the gate has ended. After that the rules
// still hold and nobody serves them: the container has no network. To take them
// back is the work of who deletes the container.
//
// Where the error comes before held, what was done stands: it opens nothing, the
// next Guard for the same container completes it, and with the container it is
// taken back.
func (r *Runtime) Guard(ctx context.Context, order agent.Guard, held func()) error {
	g := &guard{Guard: order}
	if err := g.begin(r); err != nil {
		return errors.Join(err, g.undo.Run())
	}
	held()
	if g.gate == nil {
		return nil
	}
	return g.stay(ctx)
}

func (g *guard) begin(r *Runtime) (err error) {
	rules, err := g.rules()
	if err != nil {
		return err
	}
	if g.namespace, g.process, err = netns.OpenProcess(g.PID, g.Start); err != nil {
		return g.refused(err, "the container needs a network namespace of its own, which the host's user namespace owns")
	}
	g.undo.Add("namespace", g.namespace.Close)
	g.undo.Add("process", g.process.Close)
	if err := g.apply(); err != nil {
		return err
	}
	if g.Network == agent.NetworkNone {
		return nil
	}
	servers, err := g.servers()
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		tell(nameless)
	}
	g.gate, err = startGate(
		gateInheritance{executable: besideInit(r.init, gateProgram), id: agent.GuardGateID(os.Getpid()), namespace: g.namespace},
		g.config(rules, servers))
	if err != nil {
		return err
	}
	g.undo.Add("gate", g.gate.stop)
	return nil
}

// guardLimits bound what one container costs the node outside of its own limits. A
// server that asks others needs more than the agent of a run does.
var guardLimits = wire.Limits{Connections: 4096, PerSecond: 1000}

func (g *guard) config(rules *egress.Rules, servers []netip.AddrPort) broker.Config {
	return broker.Config{Rules: rules, Limits: guardLimits, Resolver: g.resolver(servers), Socket: g.namespace.Socket, Denied: denied()}
}

// nameless is told where the gate has nobody to ask, which is no reason not to
// start: addresses may be all that a container needs.
var nameless = complaint{Reason: "no name resolves: there is no name server, or only at addresses of loopback",
	Hint: "mount a resolv.conf with name servers read-only at /etc/resolv.conf, or allow addresses"}

// rules are checked before anything is done.
func (g *guard) rules() (*egress.Rules, error) {
	if g.Network == agent.NetworkHost {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "network", Message: "mode host holds no rules", Hint: "use none, allowlist or public"}
	}
	return egress.New(egress.Config{Mode: g.Network, Rules: g.Rules, IsHost: g.isHost})
}

// isHost counts the node's addresses and the namespace's own.
func (g *guard) isHost(addr netip.Addr) bool {
	if isHost(addr) {
		return true
	}
	owned, err := g.namespace.Owns(addr)
	return err != nil || owned
}

// apply writes down what it is going to do first, so that it can be taken back
// whatever happens to this process.
func (g *guard) apply() error {
	identity, err := g.namespace.Identity()
	if err != nil {
		return err
	}
	plan, err := netns.EnginePlan(g.namespace, g.Network != agent.NetworkNone, g.Owner(), g.Policy())
	if err != nil {
		return g.refused(err, "")
	}
	state := agent.GuardState{Namespace: identity, Owner: g.Owner()}
	if g.Network != agent.NetworkNone {
		state.PID = os.Getpid()
		if state.Start, err = pidfd.StartTime(state.PID); err != nil {
			return err
		}
	}
	if err := agent.WriteGuardState(g.Directory, state); err != nil {
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

// confirm takes the rules back from a container that is gone: its removal may have
// looked for them before they were there, and a named namespace outlives it.
func (g *guard) confirm() error {
	if !g.process.Ended() {
		return nil
	}
	return errors.Join(errors.New("the container's process has ended"), g.namespace.Clear(g.Owner()))
}

func (g *guard) refused(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "network", Message: "cannot hold the container's network rules", Hint: hint, Err: err}
}

// complaint is a line of the guard's log.
type complaint struct {
	*agent.Denial
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

// tell writes to standard error, which is the guard's log. Its disk may be full: what
// holds, holds.
func tell(c complaint) { _ = json.NewEncoder(os.Stderr).Encode(c) }

// denied tells each target that is refused, once.
func denied() func(broker.Denial) {
	var mu sync.Mutex // of one line at a time
	return func(d broker.Denial) {
		mu.Lock()
		defer mu.Unlock()
		about := denial(d)
		tell(complaint{&about, d.Reason, d.Hint})
	}
}

// stay returns when there is nothing more to hold.
func (g *guard) stay(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.process.Wait(context.Background())
	}()
	select {
	case <-ended:
		return g.gate.stop()
	case reason := <-g.gate.served:
		return errors.Join(errors.New("the gate is lost, and the container has no network any more"), g.gate.ending(reason))
	case <-ctx.Done():
		return errors.Join(ctx.Err(), g.gate.stop())
	}
}
