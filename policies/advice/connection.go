package advice

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/settings"
)

// noConnection are the targets of a record that no rule could allow.
var noConnection = map[string]string{
	"everything":      "the gate was lost, and without it nothing is reached",
	"(other targets)": "the record has no space for more targets; clove run --network-log keeps all",
	"(no host name)":  "what was asked for is no host name",
}

// noRule are the words before :// of refusals that no rule decides.
var noRule = map[string]string{
	"gate":    "it was refused to the network as a whole, by a limit or a fault; the rule says which",
	"other":   "only TCP and UDP pass",
	"publish": "it came from outside to a port of the agent's, which no rule decides",
}

// usualPort is assumed for a refused look-up, which names none.
const usualPort = 443

func ofConnection(spec agent.Spec, d agent.Denial) Advice {
	word, target, _ := strings.Cut(d.Target, "://")
	for _, note := range []string{noConnection[d.Target], noConnection[target], noRule[word]} {
		if note != "" {
			return Advice{Note: note}
		}
	}
	host, port, proto, ok := endpoint(word, target)
	if !ok {
		return Advice{Note: "the record names no target that a rule could allow"}
	}
	if word == "host-port" {
		return hostPort(port)
	}
	rules, err := settings.Rules(spec)
	if err != nil {
		return Advice{Note: "the run's rules cannot be read any more"}
	}
	findings, err := rules.Why(host, port, proto)
	if err != nil {
		return Advice{Note: "no rule can allow it: " + agent.FailureOf(err).Message}
	}
	return ofVerdict(spec, host, findings[len(findings)-1].Verdict)
}

// endpoint reads what a record writes behind tcp://, udp://, dns:// and host-port://.
func endpoint(word, target string) (host string, port uint16, proto egress.Proto, ok bool) {
	proto = egress.TCP
	if word == "udp" {
		proto = egress.UDP
	}
	if word == "dns" {
		return target, usualPort, proto, target != ""
	}
	host, number, err := net.SplitHostPort(target)
	n, parseErr := strconv.ParseUint(number, 10, 16)
	return host, uint16(n), proto, err == nil && parseErr == nil && n > 0
}

// ofVerdict takes the flag from the decision's own hint.
func ofVerdict(spec agent.Spec, host string, v egress.Verdict) Advice {
	// Of several ways the hint names the narrowest first.
	hint, _, _ := strings.Cut(v.Hint, ", ")
	flag, value, _ := strings.Cut(hint, " ")
	value, _, _ = strings.Cut(value, " ")
	switch {
	case v.Allowed:
		return Advice{Note: "a rule allows the name; it was refused for the address that the name had then, or because the client showed another name or none"}
	case flag == "--host-port":
		port, _ := strconv.ParseUint(value, 10, 16)
		return hostPort(uint16(port))
	case flag != "--allow" || value == "":
		return Advice{Note: v.Hint, Risk: riskOf(host, v.Reason)}
	}
	a := Advice{Flag: "--allow " + value, Policy: "network.allow: [" + quoted(value) + "]", Risk: riskOf(host, v.Reason)}
	if spec.Network == agent.NetworkNone {
		a.Policy = "network: {mode: allowlist, allow: [" + quoted(value) + "]}"
	}
	return a
}

// quoted is a value in a YAML list: a colon or a star would mean something else in some.
func quoted(value string) string {
	if strings.ContainsAny(value, "*[]{},:@") {
		return strconv.Quote(value)
	}
	return value
}

func hostPort(port uint16) Advice {
	n := strconv.Itoa(int(port))
	return Advice{Flag: "--host-port " + n, Policy: "network.host_ports: [" + n + "]", Risk: risks[string(egress.ClassLoopback)]}
}

// risks are what a reached target may mean, by the class of its address.
var risks = map[string]string{
	string(egress.ClassMetadata): "a cloud's metadata service gives out this machine's credentials",
	string(egress.ClassHost):     "services of this host trust its users and programs, and the agent reaches them",
	string(egress.ClassLoopback): "a service on the host's 127.0.0.1 often does not authenticate its clients",
	string(egress.ClassPrivate):  "machines of the private network are reached, and many trust their neighbours",
	string(egress.ClassCGNAT):    "machines of the provider's network are reached",
	egress.ReasonDeny:            "a rule denies it on purpose",
}

func riskOf(host, reason string) string {
	if risk := risks[reason]; risk != "" {
		return risk
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "the agent can send all that it reads to this address, even if its owner changes"
	}
	return "the agent can send all that it reads to the servers of this name"
}
