package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/resolver"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/undo"
	"clove.run/clove/netns"
)

// Program is the name of the gate's program, which is installed beside clove-init.
const Program = "clove-gate"

// Config describes a gate: whose network it serves, with which rules and limits.
type Config struct {
	Program   string           // path of clove-gate
	ID        uint32           // its user and group on the host
	Namespace *netns.Namespace // the agent's network, open until the gate has stopped
	Owner     agent.Owner      // makes the sockets that lead into the host's network
	Publish   []agent.PublishedPort
	Agent     *AgentSocket     // nil: the agent has no socket of its own
	DNS       []netip.AddrPort // name servers to ask; none: the host's
	Rules     *egress.Rules
	Shadow    *egress.Rules // decided beside Rules and counted; nil: none
	Limits    agent.EgressLimits
	// Log gets every decision, Denied the first denial of each target. As the broker's,
	// they are called by many goroutines at once and must not block. Log may be nil.
	Log    func(broker.Decision)
	Denied func(d agent.Denial, reason, hint string)
	// Ask may be nil, see broker.Config.
	Ask  func(ctx context.Context, d broker.Decision) *egress.Rules
	Hold time.Duration // as broker.Config.Hold
	Swap broker.Swap   // nil: none
}

// Gate is the gate of one network: clove-gate, a process without privileges that
// reads what the agent writes, and the broker here, which decides.
type Gate struct {
	broker  *broker.Broker
	process *parent.Process
	served  chan error         // closed when the broker ended; its reason comes first
	cancel  context.CancelFunc // ends the broker
	undo    undo.Stack
}

// leg is the gate's side towards the outside: how sockets are made in the network that the
// gate leads to, and which resolver answers for names.
type leg struct {
	socket   func(family, kind int) (int, error)
	listen   func(agent.PublishedPort) (*os.File, error) // takes a port of the host's
	resolver *resolver.Resolver
	close    func() error
}

// Start makes the listeners, starts clove-gate and serves it. It returns when the
// gate serves, and on failure nothing is left. The caller ends the gate with Stop.
func Start(c Config) (*Gate, error) {
	o, err := newOutside(c.Owner)
	if err != nil {
		return nil, err
	}
	return start(c, leg{o.socket, o.listen, resolver.New(resolver.Config{Servers: c.DNS, Dial: o.dialer()}), o.close})
}

// start is Start for any leg; a guard has one in the container's network.
func start(c Config, out leg) (*Gate, error) {
	g := &Gate{served: make(chan error, 1)}
	g.undo.Add("outside sockets", out.close)
	if err := g.start(c, out); err != nil {
		return nil, errors.Join(err, g.undo.Run())
	}
	return g, nil
}

func (g *Gate) start(c Config, out leg) error {
	conn, inherited, err := wire.Pair()
	if err != nil {
		return err
	}
	g.undo.Add("gate channel", func() error { conn.Close(); return nil }) // the broker may have closed it
	// Before the listeners: clove-gate drops its privileges while they are made, and then
	// waits for the broker's Setup.
	g.process, err = parent.Start(c.Program, c.ID, inherited)
	inherited.Close()
	if err != nil {
		return err
	}
	g.undo.Add("gate process", g.process.Kill)
	all, err := listeners(c, out)
	if err != nil {
		return err
	}
	g.broker = broker.New(broker.Config{
		Rules: c.Rules, Shadow: c.Shadow, Resolver: out.resolver, Namespace: c.Namespace, Listeners: all, Socket: out.socket, Log: c.Log, Ask: c.Ask, Hold: c.Hold, Swap: c.Swap,
		Denied: func(d broker.Denial) { c.Denied(Denial(d), d.Reason, d.Hint) },
		Limits: wire.Limits{Connections: c.Limits.Connections, PerSecond: c.Limits.PerSecond, Bytes: c.Limits.Bytes}})
	// Not a caller's context: the broker ends with Close and Stop only.
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.undo.Add("broker", func() error { g.Close(); return nil })
	go func() {
		defer close(g.served)
		g.served <- g.broker.Serve(ctx, conn)
	}()
	return g.await()
}

// startTime bounds the time until clove-gate has dropped its privileges and serves.
const startTime = 20 * time.Second

// await waits until clove-gate reports that it has no privileges left.
func (g *Gate) await() error {
	timeout := time.NewTimer(startTime)
	defer timeout.Stop()
	select {
	case <-g.broker.Ready():
		return nil
	case err := <-g.served:
		return fmt.Errorf("clove-gate does not serve: %w", g.Reason(err))
	case <-timeout.C:
		return fmt.Errorf("clove-gate does not serve within %s", startTime)
	}
}

// Lost gets one value when the broker has ended, for Reason. A caller that closes the gate
// need not read it.
func (g *Gate) Lost() <-chan error { return g.served }

// Reason explains why the gate ended by itself; lost is the value from Lost.
func (g *Gate) Reason(lost error) error {
	g.process.Kill()
	return errors.Join(lost, g.process.Failure())
}

// listeners makes every socket that the gate will hold, the host's included.
func listeners(c Config, out leg) ([]broker.Listener, error) {
	sockets, err := listenOnceFree(c.Namespace.Listen, previousEnd)
	if err != nil {
		return nil, err
	}
	var all []broker.Listener
	for _, s := range sockets {
		all = append(all, broker.Listener{Kind: wire.ListenerKind(s.Kind), Port: s.Port, File: s.File})
	}
	for _, p := range c.Publish {
		file, err := out.listen(p)
		if err != nil {
			for _, l := range all {
				l.File.Close()
			}
			return nil, err
		}
		all = append(all, broker.Listener{Kind: wire.ListenPublish, Port: p.Port, File: file})
	}
	return append(all, c.Agent.listeners()...), nil
}

// AgentSocket is the agent's own socket, and where its calls go. The gate takes over both
// files, also where Start fails after it has begun to send them.
type AgentSocket struct {
	Listener, Calls *os.File
	First, Count    uint32 // the host's user ids of the sandbox
}

func (a *AgentSocket) listeners() []broker.Listener {
	if a == nil {
		return nil
	}
	return []broker.Listener{{Kind: wire.ListenCalls, IDs: &wire.IDs{First: a.First, Count: a.Count}, File: a.Calls}, {Kind: wire.ListenAgent, File: a.Listener}}
}

// previousEnd bounds the wait for the sockets of a gate before this one. That gate
// dies after its guard, whose end is known; its own end is not reported.
const previousEnd = 5 * time.Second

// listenOnceFree makes sockets by try, again while another's are still at their addresses.
func listenOnceFree(try func() ([]netns.Socket, error), patience time.Duration) ([]netns.Socket, error) {
	const pause = 20 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		sockets, err := try()
		if !errors.Is(err, unix.EADDRINUSE) || !time.Now().Before(deadline) {
			return sockets, err
		}
	}
}

// drainTime bounds the wait for the last bytes of an agent that ended by itself to leave.
const drainTime = 2 * time.Second

// Drain waits until what the agent sent has left, for two seconds at most.
func (g *Gate) Drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	g.broker.Drain(ctx)
}

// Close ends the broker and with it every connection; Totals are complete then. It
// may be called again.
func (g *Gate) Close() {
	g.cancel()
	<-g.served
}

// Stop ends the process and the broker.
func (g *Gate) Stop() error { return g.undo.Run() }

// Replace makes rules the ones that hold, and cuts every connection that they forbid.
func (g *Gate) Replace(rules *egress.Rules) { g.broker.Replace(rules) }

// ReplaceShadow makes rules the ones that are decided beside those that hold.
func (g *Gate) ReplaceShadow(rules *egress.Rules) { g.broker.ReplaceShadow(rules) }

// Totals are what went through the gate until now.
func (g *Gate) Totals() broker.Totals { return g.broker.Totals() }

// Denial is a broker's denial as a record has it.
func Denial(d broker.Denial) agent.Denial {
	return agent.Denial{Time: d.Time.UTC(), Kind: "network", Target: string(d.Kind) + "://" + d.Target, Rule: cmp.Or(d.Rule, d.Reason), Count: d.Count}
}

// Owns reports whether an address is the host's. The rules ask at each connection, because
// addresses come and go. If the kernel cannot say, it counts as the host's, which is the
// stricter class.
func Owns(addr netip.Addr) bool {
	owned, err := netns.HostOwns(addr)
	return err != nil || owned
}
