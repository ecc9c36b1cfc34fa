package runtime

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/resolver"
	"clove.run/clove/egress/wire"
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
	return egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts, IsHost: isHost, User: owner.UID != 0})
}

// isHost is asked at each connection: addresses come and go. In doubt it is
// the host's.
func isHost(addr netip.Addr) bool {
	owned, err := netns.HostOwns(addr)
	return err != nil || owned
}

// openGate starts the gate of a run that needs one.
func (l *launch) openGate() (err error) {
	if !l.spec.Gated() {
		return nil
	}
	outside, err := newOutside(l.streams.Owner)
	if err != nil {
		return err
	}
	l.undo.Add("outside sockets", outside.close)
	limits := l.spec.Egress.Limits
	l.decisions = &decisionLog{agent: l.spec.ID, to: l.streams.NetworkLog, outbox: newOutbox(decisionsWaiting)}
	l.notices = newOutbox(broker.MaxDenials + 2) // all that a run can have: nobody ever waits
	l.gate, err = startGate(
		gateInheritance{executable: besideInit(l.runtime.init, gateProgram), id: l.run.Lease.GateID(), namespace: l.network.namespace,
			publish: l.spec.Egress.Publish, listen: outside.listen},
		broker.Config{
			Rules: l.rules, Resolver: resolver.New(resolver.Config{Servers: l.spec.Egress.DNS, Dial: outside.dialer()}), Socket: outside.socket,
			Limits: wire.Limits{Connections: limits.Connections, PerSecond: limits.PerSecond, Bytes: limits.Bytes},
			Log:    l.decisions.write, Denied: l.tellDenial,
		})
	if err != nil {
		return errors.Join(err, l.lastNotices(func() error { return nil }))
	}
	l.undo.Add("gate", l.gate.stop)
	return nil
}

// lastNotices runs stop, which ends the broker, and what is still to be written.
// A broker that waits for a reader who does not read ends only in here.
func (l *launch) lastNotices(stop func() error) error {
	return l.notices.until(func() error { return l.decisions.outbox.until(stop) })
}

// tellDenial lets the user know at once, not only from the record.
func (l *launch) tellDenial(d broker.Denial) {
	if l.streams.Denied != nil {
		l.notices.put(func() { l.streams.Denied(denial(d), d.Reason, d.Hint) })
	}
}

func denial(d broker.Denial) agent.Denial {
	return agent.Denial{Time: d.Time.UTC(), Kind: "network", Target: string(d.Kind) + "://" + d.Target, Rule: cmp.Or(d.Rule, d.Reason), Count: d.Count}
}

// networkUse closes the account of the gate. lost is why the gate ended before
// the agent, if it did.
func (l *launch) networkUse(record *agent.Record) {
	record.Denials = []agent.Denial{}
	if l.gate == nil {
		return
	}
	totals := l.gate.broker.Totals()
	for _, d := range totals.Denials {
		record.Denials = append(record.Denials, denial(d))
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
	s.networkLost = strings.ReplaceAll(s.gate.ending(reason).Error(), "\n", ", ")
	if s.streams.Denied != nil {
		d, reason := agent.Denial{Time: time.Now().UTC(), Kind: "network", Target: "everything", Rule: "fail closed", Count: 1}, s.networkLost
		s.notices.put(func() { s.streams.Denied(d, reason, "the run goes on; start it again to have a network") })
	}
}
