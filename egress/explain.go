package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Explained is one rule in its canonical form.
type Explained struct {
	Deny   bool   `json:"deny"`
	Rule   string `json:"rule"`
	Protos string `json:"protos"` // "tcp", "udp" or "tcp,udp"
	Ports  string `json:"ports"`  // "80,443", "8000-8100", "*"
	Source string `json:"source"`
	Note   string `json:"note,omitempty"` // what the rule does not cover, against appearances
}

// Explain returns the rules in order of evaluation: deny rules before allow rules.
func (r *Rules) Explain() []Explained {
	explained := make([]Explained, 0, len(r.order))
	for _, rule := range r.order {
		explained = append(explained, rule.explain())
	}
	return explained
}

// explain fills in the defaults for protocol and port, which covers applies.
func (r *rule) explain() Explained {
	e := Explained{Deny: r.deny, Rule: r.text, Source: r.source, Protos: string(r.proto), Ports: r.ports.String()}
	if r.proto == "" {
		e.Protos = string(TCP)
		if r.deny {
			e.Protos += "," + string(UDP)
		}
	}
	if r.ports == (portRange{}) {
		e.Ports = fmt.Sprintf("%d,%d", webPorts[0], webPorts[1])
		if r.deny {
			e.Ports = everyPort.String()
		}
	}
	if r.prefix.IsValid() && !r.prefix.IsSingleIP() && !r.deny {
		e.Note = r.note()
	}
	return e
}

// note says what an allowed network leaves out, see namesClassOf.
func (t Target) note() string {
	for _, block := range blocks {
		if block.class == ClassPublic || block.prefix.Bits() == 0 || !block.prefix.Overlaps(t.prefix) {
			continue
		}
		if first := blockOf(t.prefix.Addr()); t.liesIn(first.class) && first.class != ClassPublic {
			return "not the metadata services and this host's own addresses in it"
		}
		return "only the public addresses in it"
	}
	return ""
}

// Finding is one question that Why asks of the rules, and the answer.
type Finding struct {
	Question string  `json:"question"`
	Verdict  Verdict `json:"verdict"`
}

// Why predicts the decisions on a connection without using the network. For a name it
// assumes that the name resolves to a public address and that the client shows it. The
// verdict of the last finding is final.
func (r *Rules) Why(host string, port uint16, proto Proto) ([]Finding, error) {
	if port == 0 || (proto != TCP && proto != UDP) {
		return nil, invalid("", fmt.Sprintf("cannot tell what becomes of port %d over %s", port, quote(string(proto))), "give a port from 1 to 65535, over tcp or udp")
	}
	// Brackets are accepted, because a target's IPv6 address has them.
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	var name Name
	if err != nil {
		if name, err = ParseName(host); err != nil {
			return nil, err
		}
	}
	if name.IsLocalhost() {
		addr = hostLoopback
	}
	if addr.IsValid() {
		c := Connection{Proto: proto, Target: netip.AddrPortFrom(addr, port)}
		return r.findings(nil, c, r.Connect, c.Target.String()), nil
	}
	return r.whyName(name, port, proto), nil
}

// WhyTarget is Why's final verdict on a target that names one place and at most one port: without a
// port that on 80 and 443, of which both must be allowed.
func (r *Rules) WhyTarget(t Target) (v Verdict) {
	host, proto, ports := string(t.name), t.proto, webPorts
	if t.prefix.IsValid() {
		host = t.prefix.Addr().String()
	}
	if proto == "" {
		proto = TCP
	}
	if t.ports != (portRange{}) {
		ports = []uint16{t.ports.first}
	}
	for _, port := range ports {
		findings, err := r.Why(host, port, proto)
		if err != nil {
			return refused(ReasonInvalid, err.Error(), "")
		}
		if v = findings[len(findings)-1].Verdict; !v.Allowed {
			return v
		}
	}
	return v
}

// whyName asks in the order of a program: look-up, connection, first bytes. The address is
// unknown, so of the address rules only the groups can match.
func (r *Rules) whyName(name Name, port uint16, proto Proto) []Finding {
	findings := []Finding{{fmt.Sprintf("ask for the addresses of %s", name), r.Resolve(name)}}
	if !findings[0].Verdict.Allowed {
		if reason := findings[0].Verdict.Reason; reason == ReasonNoRule || reason == ReasonNoneMode {
			findings[0].Verdict.Hint = allowFlag(proto, string(name), port) // the port is added, so that the rule also allows the connection
		}
		return findings
	}
	c := Connection{Proto: proto, Target: netip.AddrPortFrom(netip.Addr{}, port), Pinned: []Name{name}, Shown: name}
	public := reach{bits: ClassPublic, class: ClassPublic}
	connect := func(c Connection) Verdict { return r.connect(c, public) }
	return r.findings(findings, c, connect, fmt.Sprintf("a public address of %s, port %d", name, port))
}

// findings asks a second time where the first answer has a condition.
func (r *Rules) findings(findings []Finding, c Connection, connect func(Connection) Verdict, subject string) []Finding {
	verdict := connect(c)
	findings = append(findings, Finding{fmt.Sprintf("connect over %s to %s", c.Proto, subject), verdict})
	if !verdict.Allowed || verdict.Verify == VerifyNone {
		return findings
	}
	c.Looked = true
	shown := "show no name"
	if c.Shown != "" {
		shown = "show the name " + string(c.Shown)
	}
	return append(findings, Finding{shown, connect(c)})
}
