package broker

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"clove.run/clove/egress"
)

// Outcome is the kind of event that a Decision records.
type Outcome string

// The outcomes. An allowed connection has two decisions: one when it opens, and
// OutcomeEnded or OutcomeCut at its end, with its bytes.
const (
	OutcomeAllowed     Outcome = "allowed"
	OutcomeDenied      Outcome = "denied"
	OutcomeUnreachable Outcome = "unreachable" // allowed, but resolving or dialling failed
	OutcomeEnded       Outcome = "ended"
	OutcomeCut         Outcome = "cut"     // ended by the broker: new rules, a limit, the end of the run
	OutcomeHostile     Outcome = "hostile" // a request that no honest gate sends; the network has ended
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

// The broker's own values of Decision.Reason.
const (
	ReasonLocal       = "local"       // a name that never leaves the host
	ReasonStandin     = "asks"        // an address of the run's own was the answer: people are asked when the agent connects
	ReasonUnresolved  = "unresolved"  // no usable answer from the name servers
	ReasonUnreachable = "unreachable" // the connection failed
	ReasonReplaced    = "replaced"    // the rules were replaced by ones that forbid it
	ReasonOver        = "over"        // the run has ended
	ReasonUntrusted   = "untrusted"   // of OutcomeHostile
	ReasonNames       = "names"       // too many questions, names or bytes of names below a rule that spells none out
)

// Decision is one line of the log of the agent's network use.
type Decision struct {
	Time    time.Time      `json:"time"`
	Outcome Outcome        `json:"verdict"`
	Kind    Kind           `json:"kind"`
	Rule    string         `json:"rule,omitempty"`
	Source  string         `json:"source,omitempty"`  // the origin of the rule, for example "--allow"
	Name    string         `json:"name,omitempty"`    // the name that was queried, shown, or pinned to the address
	Address netip.AddrPort `json:"address,omitzero"`  // port 0 where there is none
	Pinned  []egress.Name  `json:"-"`                 // the names that led the agent to the address, whether or not they decided
	Number  uint64         `json:"number,omitempty"`  // of the connection or flow, the same in its two decisions
	RxBytes int64          `json:"rx_bytes,omitzero"` // towards the agent; of a name those of the answer
	TxBytes int64          `json:"tx_bytes,omitzero"`
	Reason  string         `json:"reason,omitempty"` // a reason of egress, of wire, or of the constants above
	Detail  string         `json:"detail,omitempty"` // why, one sentence without a full stop
	Hint    string         `json:"hint,omitempty"`   // how to allow what was denied
	Count   int64          `json:"count,omitempty"`  // how many events it stands for, if not one
}

// Target is the target of the decision, as a user would write it.
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
