package runtime

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/host"
)

// gated is a run's network behind a gate, and what the user is shown of it. nil is
// a run without a gate.
type gated struct {
	*host.Gate
	decisions *decisionLog
	notices   *outbox // denials, while the agent runs
	denied    func(d agent.Denial, reason, hint string)
	denials   *denials
	lost      string // why the gate ended before the agent did
}

// openGate starts the gate of a run, and sends what it decides to the streams.
func openGate(c host.Config, id agent.ID, streams IO, decided func(broker.Decision), all *denials) (*gated, error) {
	g := &gated{
		decisions: &decisionLog{agent: id, to: streams.NetworkLog, outbox: newOutbox(decisionsWaiting)},
		// Space for all that a run can have, so that put never waits: one for each target, one
		// for the others, one for the loss of the gate.
		notices: newOutbox(broker.MaxDenials + 2),
		denied:  streams.Denied,
		denials: all,
	}
	c.Log, c.Denied = func(d broker.Decision) {
		decided(d)
		g.decisions.write(d)
	}, g.reportDenial
	var err error
	if g.Gate, err = host.Start(c); err != nil {
		return nil, errors.Join(err, g.flush(func() {}))
	}
	return g, nil
}

// flush runs stop, which ends the broker, and writes what is still to be written. A broker
// that waits for a reader who does not read ends only in here. stop is innermost, so that
// both outboxes still take what the broker reports while it ends.
func (g *gated) flush(stop func()) error {
	return g.notices.until(func() error { return g.decisions.outbox.until(func() error { stop(); return nil }) })
}

// reportDenial shows the user a denial at once; the record comes at the end.
func (g *gated) reportDenial(d agent.Denial, reason, hint string) {
	g.denials.note(d)
	if g.denied != nil {
		g.notices.put(func() { g.denied(d, reason, hint) })
	}
}

// end ends the agent's network, so that the record has all of it. drain lets what
// the agent has sent leave first.
func (g *gated) end(drain bool) {
	if g == nil {
		return
	}
	if drain {
		g.Drain()
	}
	_ = g.flush(g.Close)
}

// lose notes that the gate ended before the agent. The agent goes on without a
// network: the listeners ended with the gate, and nothing else leads out.
func (g *gated) lose(reason error) {
	g.lost = strings.ReplaceAll(g.Reason(reason).Error(), "\n", ", ")
	g.reportDenial(agent.Denial{Time: time.Now().UTC(), Kind: "network", Target: "everything", Rule: "fail closed", Count: 1},
		g.lost, "the run goes on; start it again to have a network")
}

// enter adds to the record what went through the gate, and what it refused.
func (g *gated) enter(record *agent.Record, mode string, limits agent.EgressLimits) {
	record.Denials = []agent.Denial{}
	if g == nil {
		return
	}
	totals := g.Totals()
	for _, d := range totals.Denials {
		record.Denials = append(record.Denials, host.Denial(d))
	}
	record.Usage.NetRxBytes, record.Usage.NetTxBytes = &totals.RxBytes, &totals.TxBytes
	record.Network = &agent.NetworkUse{Mode: mode, Connections: totals.Connections, ConnectionsPeak: int64(totals.PeakOpen),
		Refused: totals.Refused, Limits: limits, Lost: g.lost}
}

// shadowed is what the rules of the run's shadow would have refused.
func (g *gated) shadowed() (all []agent.Denial) {
	if g == nil {
		return nil
	}
	for _, d := range g.Totals().Shadow {
		all = append(all, host.Denial(d))
	}
	return all
}

// decisionsWaiting bounds the lines that a slow reader of --network-log may be behind
// before the agent waits for it.
const decisionsWaiting = 1024

// decisionLog writes each decision as one line of JSON.
type decisionLog struct {
	agent  agent.ID
	to     io.Writer // nil: none
	outbox *outbox
}

// write encodes in the broker's goroutine; only the write itself, which may block, goes to
// the outbox.
func (log *decisionLog) write(d broker.Decision) {
	if log.to == nil {
		return
	}
	line, err := json.Marshal(struct {
		Agent agent.ID `json:"agent"`
		broker.Decision
	}{log.agent, d})
	if err != nil {
		return // a value of clove's own making always encodes
	}
	log.outbox.put(func() { log.to.Write(append(line, '\n')) })
}
