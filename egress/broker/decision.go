package broker

import (
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Outcome is what a Decision says happened.
type Outcome string

// The outcomes. An allowed connection has two decisions: one when it opens, and
// one of OutcomeEnded or OutcomeCut, which brings its bytes.
const (
	OutcomeAllowed     Outcome = "allowed"
	OutcomeDenied      Outcome = "denied"
	OutcomeUnreachable Outcome = "unreachable" // allowed, but resolving or dialling failed
	OutcomeEnded       Outcome = "ended"
	OutcomeCut         Outcome = "cut"     // ended by the broker: new rules, a limit, the end of the run
	OutcomeHostile     Outcome = "hostile" // no honest gate asks this; the network is gone
)

// Kind is what a Decision is about.
type Kind string

// The kinds.
const (
	KindDNS      Kind = "dns"
	KindTCP      Kind = "tcp"
	KindUDP      Kind = "udp"
	KindHostPort Kind = "host-port"
	KindPublish  Kind = "publish"
	KindGate     Kind = "gate"  // the gate itself
	KindOther    Kind = "other" // neither TCP nor UDP
)

// The broker's own words for Decision.Reason.
const (
	ReasonLocal       = "local"       // a name that never leaves the host
	ReasonUnresolved  = "unresolved"  // the name servers gave no answer that can be used
	ReasonUnreachable = "unreachable" // the dial failed
	ReasonReplaced    = "replaced"    // the rules were replaced by ones that forbid it
	ReasonOver        = "over"        // the run is over
	ReasonUntrusted   = "untrusted"   // of OutcomeHostile
)

// Decision is one line of the record of what the agent did with its network.
type Decision struct {
	Time    time.Time      `json:"time"`
	Outcome Outcome        `json:"verdict"`
	Kind    Kind           `json:"kind"`
	Rule    string         `json:"rule,omitempty"`
	Source  string         `json:"source,omitempty"`  // who gave the rule, for example "--allow"
	Name    string         `json:"name,omitempty"`    // asked for, shown, or the one whose pin led here
	Address netip.AddrPort `json:"address,omitzero"`  // port 0 where there is none
	Number  uint64         `json:"number,omitempty"`  // of the connection or flow: joins its two decisions
	RxBytes int64          `json:"rx_bytes,omitzero"` // towards the agent
	TxBytes int64          `json:"tx_bytes,omitzero"`
	Reason  string         `json:"reason,omitempty"` // one word: egress's reasons, wire's, or the broker's own below
	Detail  string         `json:"detail,omitempty"` // why, one sentence without a full stop
	Hint    string         `json:"hint,omitempty"`   // how to ask for what was denied
	Count   int64          `json:"count,omitempty"`  // how many it stands for, if not for one
}

// Target is what the decision was about, as a person would write it.
func (d Decision) Target() string {
	port := d.Address.Port()
	switch {
	case d.Name != "" && port != 0:
		return net.JoinHostPort(d.Name, strconv.Itoa(int(port)))
	case d.Name != "":
		return d.Name
	case port != 0:
		return d.Address.String()
	case d.Address.IsValid():
		return d.Address.Addr().String()
	}
	if d.Kind == KindDNS {
		return "(no host name)"
	}
	return "everything"
}
