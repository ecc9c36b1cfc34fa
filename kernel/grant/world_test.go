package grant

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"clove.run/clove/egress"
)

// chainSeed makes the property tests the same in each run.
const chainSeed = 14

// world draws from a few hundred scopes of each kind, which are often near each other.
type world struct {
	*rand.Rand
	scopes   map[Kind][]Scope
	requests map[Kind][]Scope // those that are concrete
}

func newWorld(t *testing.T) world {
	t.Logf("the seed is %d", chainSeed)
	w := world{rand.New(rand.NewPCG(chainSeed, chainSeed)), map[Kind][]Scope{}, map[Kind][]Scope{}}
	for _, kind := range drawnKinds {
		for range 400 {
			s, err := Parse(w.text(kind))
			if err != nil {
				continue // a name that begins with a slash, for instance
			}
			w.scopes[kind] = append(w.scopes[kind], s)
			if s.Concrete() {
				w.requests[kind] = append(w.requests[kind], s)
			}
		}
	}
	return w
}

func (w world) scope(kind Kind) Scope { return w.scopes[kind][w.IntN(len(w.scopes[kind]))] }

func (w world) request(kind Kind) Scope { return w.requests[kind][w.IntN(len(w.requests[kind]))] }

func (w world) pick(texts ...string) string { return texts[w.IntN(len(texts))] }

// word has letters that repeat, so that globs match in several ways.
func (w world) word(parts ...string) string {
	var text strings.Builder
	for range 1 + w.IntN(5) {
		text.WriteString(w.pick(parts...))
	}
	return text.String()
}

func (w world) path() string {
	text := ""
	for range w.IntN(4) {
		text += "/" + w.pick("a", "a", "a", "ab", "a%2e", "..a")
	}
	if text == "" {
		return "/"
	}
	return text
}

var (
	names    = []string{"example.com", "api.example.com", "a.api.example.com", "badexample.com", "example.com.evil.test"}
	prefixes = []string{"10.0.0.0/8", "10.0.0.0/7", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "10.1.2.4", "0.0.0.0/0", "93.0.0.0/8", "92.0.0.0/8", "92.0.0.0/7", "93.184.216.34", "169.254.169.254", "169.254.0.0/16",
		"168.63.129.0/24", "100.64.0.9", "[::ffff:10.1.2.3]", "[fd00::]/8", "[fd00:ec2::254]", "[2606:2800::]/32", "[2606:2800::1]", "[2002:a01:203::1]", "[64:ff9b::a01:203]", "[::]/0"}
	ports = []string{"", "", ":80", ":443", ":22", ":80-443", ":22-80", ":*"}
)

func (w world) net() string {
	var place string
	switch w.IntN(6) {
	case 0:
		place = w.pick("public", "private", "metadata", "host")
	case 1:
		place = w.pick("*.example.com", "*.api.example.com")
	case 2:
		place = w.pick(names...)
	default:
		place = w.pick(prefixes...)
	}
	return w.pick("", "", "", "tcp://", "udp://") + place + w.pick(ports...)
}

// text draws a scope of a kind: one kind for each grammar, and state and model for their rights.
func (w world) text(kind Kind) string {
	switch kind {
	case Tool:
		return "tool:" + w.word("a", "b", "a", "*", "/")
	case Model:
		return "model:" + w.word("a", "b", "a", "*", ":") + w.pick("", ":provider-tools", ":provider-state")
	case Net:
		return "net:" + w.net()
	case State:
		return "state:" + w.path() + w.pick(":ro", ":rw")
	case Audit:
		return "audit:" + strings.TrimPrefix(w.word("/a", "/a", "/b", "/ab"), "/")
	}
	return "taint:" + w.pick("web", "mail", "agent:a", "agent:b")
}

var drawnKinds = []Kind{Tool, Model, Net, State, Audit, Taint}

// connection has shown its name, where it has one.
func (w world) connection() egress.Connection {
	place := w.pick("10.1.2.3", "10.1.2.4", "10.9.9.9", "93.184.216.34", "169.254.169.254", "169.254.1.1", "168.63.129.16", "168.63.129.1", "fd00::1", "fd00:ec2::254", "2606:2800::1", "2002:a01:203::1", "64:ff9b::a01:203")
	c := egress.Connection{Proto: egress.TCP, Target: netip.AddrPortFrom(netip.MustParseAddr(place), []uint16{22, 80, 443, 9000}[w.IntN(4)]), Looked: true}
	if w.IntN(4) == 0 {
		c.Proto = egress.UDP
	}
	if w.IntN(2) == 0 {
		c.Shown = egress.Name(w.pick(names...))
		c.Pinned = []egress.Name{c.Shown}
	}
	return c
}
