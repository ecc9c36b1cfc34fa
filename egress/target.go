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

// Target is a parsed target: a name, an address or a group, with ports and a protocol.
// The zero Target covers nothing.
type Target struct {
	proto  Proto // "": depends on the rule, see covers
	group  Class // the name of a group, else ""
	name   Name  // a name; with wild set, the part after "*."
	wild   bool
	any    bool         // whatever is at the name's public addresses: the client need not show the name
	prefix netip.Prefix // an address or a network
	ports  portRange    // the zero range: depends on the rule, see covers
}

// groups are the groups that a target can name. There is none for loopback, link-local or multicast: a rule
// must name these addresses one by one.
var groups = []Class{ClassPublic, ClassPrivate, ClassMetadata, ClassHost}

// anyMark begins a target that takes the addresses of a name.
const anyMark = "@"

// String is the canonical text; ParseTarget returns the same Target for it.
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

// place is the target without protocol and ports. An IPv6 address is in brackets even
// without a port, so that one can be appended.
func (t Target) place() string {
	switch {
	case t.group != "":
		return string(t.group)
	case t.wild:
		return "*." + string(t.name)
	case t.any:
		return anyMark + string(t.name)
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

// portRange is a range of ports; both ends are included.
type portRange struct{ first, last uint16 }

// everyPort is the form of `:*` and `:1-65535`.
var everyPort = portRange{1, 65535}

// webPorts are the ports of an allow rule without a port. On them the client must show the
// name that it connects to.
var webPorts = []uint16{80, 443}

// isWeb reports whether a client must show a name on this port. Over UDP none can be
// checked: the name in a QUIC hello is encrypted with keys that only a QUIC stack derives.
func isWeb(proto Proto, port uint16) bool { return proto == TCP && slices.Contains(webPorts, port) }

// ShowsName reports whether clients show the name that they want on this port.
func ShowsName(proto Proto, port uint16) bool { return isWeb(proto, port) }

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
