package resolve

import (
	"net"
	"strings"

	"clove.run/clove/egress"
	"clove.run/clove/policies/settings"
)

// webPort is the port of an endpoint without one.
const webPort = 443

// Endpoint is what a connection goes to.
type Endpoint struct {
	Proto egress.Proto
	Host  string // a name or an address, as it is written
	Port  uint16
}

// ParseEndpoint reads [tcp://|udp://]HOST[:PORT]. Without a port it is 443.
func ParseEndpoint(text string) (Endpoint, error) {
	e := Endpoint{Proto: egress.TCP, Port: webPort}
	rest := text
	if word, after, found := strings.Cut(text, "://"); found {
		if e.Proto, rest = egress.Proto(word), after; e.Proto != egress.TCP && e.Proto != egress.UDP {
			return e, invalid("", "write HOST:PORT; tcp:// or udp:// may stand before it", "%q is no target: %s is not a protocol that rules know", text, word)
		}
	}
	host, number, err := net.SplitHostPort(rest)
	if err != nil { // no port
		host = strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")
	} else if e.Port, err = settings.ParsePort(number); err != nil {
		return e, invalid("", "write HOST:PORT with a port from 1 to 65535", "%q is no target", text)
	}
	e.Host = host
	return e, nil
}
