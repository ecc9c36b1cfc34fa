package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Proto is a transport protocol that the gate relays.
type Proto string

// The protocols.
const (
	TCP Proto = "tcp"
	UDP Proto = "udp"
)

// Target is one canonical target: what it covers by name, by address or by a
// group word, on which ports, over which protocols. The zero Target covers nothing.
type Target struct {
	proto  Proto // "": what the rule says, see covers
	word   Class // a group word, else ""
	name   Name  // a name, or with wild set what follows "*."
	wild   bool
	prefix netip.Prefix // an address or a network
	ports  portRange    // the zero range: the same
}

// words are the group words of a target. There is none for loopback, link-local
// or multicast: nobody needs all of these, so they are named one by one.
var words = []Class{ClassPublic, ClassPrivate, ClassMetadata, ClassHost}

// String is the canonical text: ParseTarget gives the same Target for it.
func (t Target) String() string {
	var s strings.Builder
	if t.proto != "" {
		s.WriteString(string(t.proto) + "://")
	}
	s.WriteString(t.place())
	if t.ports != (portRange{}) {
		s.WriteString(":" + t.ports.String())
	}
	return s.String()
}

// place is the target without protocol and ports. IPv6 stands in brackets even
// where no port follows, so that one can be added by appending it.
func (t Target) place() string {
	switch {
	case t.word != "":
		return string(t.word)
	case t.wild:
		return "*." + string(t.name)
	case t.name != "":
		return string(t.name)
	case !t.prefix.IsValid():
		return ""
	}
	text, length := t.prefix.Addr().String(), ""
	if t.prefix.Addr().Is6() {
		text = "[" + text + "]"
	}
	if !t.prefix.IsSingleIP() {
		length = fmt.Sprintf("/%d", t.prefix.Bits())
	}
	return text + length
}

// portRange is first to last, both of them in it.
type portRange struct{ first, last uint16 }

// everyPort is how `:*` and `:1-65535` are kept.
var everyPort = portRange{1, 65535}

// webPorts are what an allowed target without a port means, and the ports on
// which a client is asked for the name that it wants to see.
var webPorts = []uint16{80, 443}

// isWeb says whether a client must show its name there. UDP is never asked: the
// name in a QUIC hello is encrypted with keys that only a QUIC stack derives.
func isWeb(proto Proto, port uint16) bool { return proto == TCP && slices.Contains(webPorts, port) }

func (p portRange) String() string {
	switch {
	case p == everyPort:
		return "*"
	case p.first == p.last:
		return fmt.Sprint(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.last)
}

func (p portRange) contains(port uint16) bool { return p.first <= port && port <= p.last }
