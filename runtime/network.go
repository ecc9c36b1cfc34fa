package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/host"
	"clove.run/clove/egress/resolver"
	"clove.run/clove/netns"
)

// network is a namespace in the making. It needs nothing of the other steps
// and takes about as long as the store does, so both are done at once.
type network struct {
	made      chan struct{}    // closed when the other fields are set
	namespace *netns.Namespace // nil: the host's own
	err       error
}

func anticipateNetwork(spec agent.Spec) *network {
	n := &network{made: make(chan struct{})}
	go func() {
		defer close(n.made)
		switch {
		case spec.Network == agent.NetworkHost:
		case spec.Gated():
			n.namespace, n.err = netns.NewPlan(netns.Config{
				Everything: spec.Network != agent.NetworkNone, HostPorts: spec.Egress.HostPorts}).Make()
		default:
			n.namespace, n.err = netns.New()
		}
	}()
	return n
}

func (n *network) await() error {
	<-n.made
	return n.err
}

// path is empty for the host's own namespace.
func (n *network) path() string {
	if n.namespace == nil {
		return ""
	}
	return n.namespace.Path()
}

// abandon lets go of the namespace, whenever it comes.
func (n *network) abandon() error {
	if n.await() != nil || n.namespace == nil {
		return nil // there is none; who awaited it has the reason
	}
	return n.namespace.Close()
}

// Nameserver is the address of the gate's DNS inside, the one that docker's
// users know: nothing else listens there.
const nameserver = "127.0.0.11"

// networkFiles are resolv.conf and hosts inside; empty means rootfs's own.
func networkFiles(spec agent.Spec) (resolvConf, hosts string, err error) {
	switch spec.Network {
	case agent.NetworkHost:
		return hostFiles()
	case agent.NetworkNone:
		return "", "", nil
	}
	text := "nameserver " + nameserver + "\noptions timeout:5 attempts:2\n"
	if domains := searchDomains(spec); len(domains) > 0 {
		text = "search " + strings.Join(domains, " ") + "\n" + text
	}
	return text, "", nil
}

// moreHosts are the lines of /etc/hosts that were asked for.
func moreHosts(spec agent.Spec) string {
	var lines strings.Builder
	for _, h := range spec.Hosts {
		fmt.Fprintf(&lines, "%s\t%s\n", h.Address, h.Name)
	}
	return lines.String()
}

// searchDomains are those of the host's that a rule names anyway: the others
// are no business of the agent's.
func searchDomains(spec agent.Spec) []string {
	if len(spec.Egress.DNS) > 0 {
		return nil
	}
	return slices.DeleteFunc(resolver.New(resolver.Config{}).SearchDomains(), func(domain string) bool {
		return !slices.ContainsFunc(spec.Egress.Rules, func(r agent.EgressRule) bool {
			return !r.Deny && strings.Contains(r.Target, "."+domain)
		})
	})
}

// hostFiles are the host's own, for an agent in the host's network.
func hostFiles() (resolvConf, hosts string, err error) {
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	names, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	return string(resolv), string(names), nil
}

// CheckRules rejects network rules that a run of the owner's would not start with.
func CheckRules(spec agent.Spec, owner agent.Owner) error {
	_, err := rulesOf(spec, owner)
	return err
}

// rulesOf compiles the spec's rules.
func rulesOf(spec agent.Spec, owner agent.Owner) (*egress.Rules, error) {
	config := egress.Config{Mode: spec.Network, HostPorts: spec.Egress.HostPorts, IsHost: host.Owns, User: owner.UID != 0}
	for _, r := range spec.Egress.Rules {
		config.Lines = append(config.Lines, egress.Line{Deny: r.Deny, Target: r.Target, Source: r.Source})
	}
	return egress.New(config)
}

// openGate starts the gate of a run that needs one.
func (l *launch) openGate() (err error) {
	if !l.spec.Gated() {
		return nil
	}
	l.decisions = &decisionLog{agent: l.spec.ID, to: l.streams.NetworkLog, outbox: newOutbox(decisionsWaiting)}
	l.notices = newOutbox(broker.MaxDenials + 2) // all that a run can have: nobody ever waits
	asked := l.spec.Egress
	l.gate, err = host.Start(host.Config{
		Program: besideInit(l.runtime.init, host.Program), ID: l.run.Lease.GateID(), Namespace: l.network.namespace, Owner: l.streams.Owner,
		Publish: asked.Publish, DNS: asked.DNS, Rules: l.rules, Limits: asked.Limits, Log: l.decisions.write, Denied: l.reportDenial,
	})
	if err != nil {
		return errors.Join(err, l.lastNotices(func() error { return nil }))
	}
	l.undo.Add("gate", l.gate.Stop)
	return nil
}

// closeGate ends the agent's network, so that the record has all of it. What an
// agent that ended by itself still has on its way may leave.
func (l *launch) closeGate(seen outcome) {
	if l.gate == nil {
		return
	}
	if seen.cause == causeNone {
		l.gate.Drain()
	}
	_ = l.lastNotices(func() error { l.gate.Close(); return nil })
}

// lastNotices runs stop, which ends the broker, and what is still to be written.
// A broker that waits for a reader who does not read ends only in here.
func (l *launch) lastNotices(stop func() error) error {
	return l.notices.until(func() error { return l.decisions.outbox.until(stop) })
}

// reportDenial shows the user a denial at once; the record comes at the end.
func (l *launch) reportDenial(d agent.Denial, reason, hint string) {
	if l.streams.Denied != nil {
		l.notices.put(func() { l.streams.Denied(d, reason, hint) })
	}
}

// networkUse enters in the record what went through the gate.
func (l *launch) networkUse(record *agent.Record) {
	record.Denials = []agent.Denial{}
	if l.gate == nil {
		return
	}
	totals := l.gate.Totals()
	for _, d := range totals.Denials {
		record.Denials = append(record.Denials, host.Denial(d))
	}
	record.Usage.NetRxBytes, record.Usage.NetTxBytes = &totals.RxBytes, &totals.TxBytes
	record.Network = &agent.NetworkUse{Mode: l.spec.Network, Connections: totals.Connections, ConnectionsPeak: int64(totals.PeakOpen),
		Refused: totals.Refused, Limits: l.spec.Egress.Limits, Lost: l.networkLost}
}

// decisionsWaiting is how many lines a slow reader of --network-log may be
// behind before the agent waits for it.
const decisionsWaiting = 1024

// decisionLog writes each decision as one line of JSON.
type decisionLog struct {
	agent  agent.ID
	to     io.Writer // nil: nobody asked
	outbox *outbox
}

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

// loseNetwork notes that the gate ended first. The agent goes on without a
// network: the listeners went with the gate, and nothing else leads out.
func (s *supervisor) loseNetwork(reason error) {
	s.networkLost = strings.ReplaceAll(s.gate.Reason(reason).Error(), "\n", ", ")
	if s.streams.Denied != nil {
		d, reason := agent.Denial{Time: time.Now().UTC(), Kind: "network", Target: "everything", Rule: "fail closed", Count: 1}, s.networkLost
		s.notices.put(func() { s.streams.Denied(d, reason, "the run goes on; start it again to have a network") })
	}
}
