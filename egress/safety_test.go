package egress

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// world is a set of rules and one request, derived from bytes.
type world struct {
	bytes []byte
}

func (w *world) next(n int) int {
	if len(w.bytes) == 0 {
		return 0
	}
	value := int(w.bytes[0])
	w.bytes = w.bytes[1:]
	return value % n
}

func (w *world) pick(from []string) string { return from[w.next(len(from))] }

// addr is mostly a special address, else any address.
func (w *world) addr() netip.Addr {
	switch w.next(4) {
	case 0:
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(w.next(256))<<24|uint32(w.next(256))<<16|uint32(w.next(256)))
		return netip.AddrFrom4(b)
	case 1:
		return hostAddresses[w.next(len(hostAddresses))]
	}
	return netip.MustParseAddr(classRows[w.next(len(classRows))].addr)
}

func (w *world) target() string {
	ports := w.pick([]string{"", ":*", ":443", ":22", ":1-100"})
	proto := w.pick([]string{"", "tcp://", "udp://"})
	switch w.next(4) {
	case 0:
		return proto + string(groups[w.next(len(groups))]) + ports
	case 1:
		return proto + w.pick([]string{"api.example.com", "*.example.com", "evil.test", "*.evil.test"}) + ports
	}
	addr := w.addr().WithZone("").Unmap()
	bits := addr.BitLen()
	if w.next(2) == 0 {
		bits = w.next(addr.BitLen() + 1)
	}
	prefix, _ := addr.Prefix(bits)
	if addr.Is6() {
		return fmt.Sprintf("%s[%s]/%d%s", proto, prefix.Addr(), bits, ports)
	}
	return proto + prefix.String() + ports
}

// rules skips lines that New refuses: loopback, ::/90 and the like.
func (w *world) rules() (*Rules, Config) {
	config := Config{Mode: w.pick([]string{agent.NetworkAllowlist, agent.NetworkPublic}), HostPorts: []uint16{5432},
		IsHost: func(addr netip.Addr) bool { return slices.Contains(hostAddresses, addr) }}
	for range w.next(8) {
		line := agent.EgressRule{Deny: w.next(3) == 0, Target: w.target(), Source: "x"}
		if _, err := New(Config{Rules: []agent.EgressRule{line}}); err == nil {
			config.Rules = append(config.Rules, line)
		}
	}
	rules, err := New(config)
	if err != nil {
		panic(err)
	}
	return rules, config
}

// named is an independent implementation: it uses only texts and net/netip.
func named(config Config, addr netip.Addr) bool {
	plain := addr.Unmap()
	host, class := isHostAddress(plain), Classify(addr)
	for _, line := range config.Rules {
		place := strings.TrimPrefix(strings.TrimPrefix(line.Target, "tcp://"), "udp://")
		if line.Deny {
			continue
		}
		for _, group := range groups {
			if strings.Split(place, ":")[0] == string(group) && (host && group == ClassHost || !host && (group == class || group == ClassPrivate && class == ClassCGNAT)) {
				return true
			}
		}
		prefix, err := netip.ParsePrefix(prefixText(place))
		if err != nil || !prefix.Contains(plain) {
			continue
		}
		if prefix.IsSingleIP() || (!host && partOfOne(prefix, specialNetworks[class])) {
			return true
		}
	}
	return false
}

// specialNetworks are allowed by a rule that names a part of them; metadata and the host's own
// addresses must be named one by one.
var specialNetworks = map[Class][]string{
	ClassPrivate:       {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10", "64:ff9b:1::/48"},
	ClassCGNAT:         {"100.64.0.0/10"},
	ClassLinkLocal:     {"169.254.0.0/16", "fe80::/10"},
	ClassMulticast:     {"224.0.0.0/4", "ff00::/8"},
	ClassDocumentation: {"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"},
	ClassReserved:      {"0.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "2001::/23"},
}

func partOfOne(p netip.Prefix, networks []string) bool {
	return slices.ContainsFunc(networks, func(text string) bool {
		network := netip.MustParsePrefix(text)
		return network.Contains(p.Addr()) && network.Contains(lastOf(p))
	})
}

func prefixText(place string) string {
	if inside, after, found := strings.Cut(strings.TrimPrefix(place, "["), "]"); found {
		return inside + strings.Split(after, ":")[0]
	}
	return strings.Split(place, ":")[0]
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(b); bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// isHostAddress also finds the host's address embedded in NAT64, 6to4 and the rest.
func isHostAddress(addr netip.Addr) bool {
	if addr.Is6() && addr.Zone() == "" {
		if inner, _, ok := carried(addr); ok && slices.Contains(hostAddresses, inner) {
			return true
		}
	}
	return slices.Contains(hostAddresses, addr)
}

// checkSafety checks the guarantee: with any rules, names and first bytes, an address that is
// not public is allowed only by a rule that names it.
func checkSafety(t *testing.T, data []byte) (allowedSpecial bool) {
	w := &world{data}
	rules, config := w.rules()
	addr := w.addr()
	c := Connection{Proto: Proto(w.pick([]string{"tcp", "udp"})), Target: netip.AddrPortFrom(addr, []uint16{443, 80, 22, 5432}[w.next(4)]),
		Looked: w.next(2) == 0, Shown: Name(w.pick([]string{"", "api.example.com", "evil.test"}))}
	for range w.next(3) {
		c.Pinned = append(c.Pinned, Name(w.pick([]string{"api.example.com", "evil.test", "a.evil.test"})))
	}
	class := Classify(addr)
	special := class != ClassPublic || isHostAddress(addr.Unmap())
	verdict := rules.Connect(c)
	if verdict.Allowed == (verdict.Detail != "") || verdict.Reason == "" || (verdict.Allowed && verdict.Rule == "") {
		t.Fatalf("%+v: %+v", c, verdict)
	}
	if class == ClassLoopback && verdict.Allowed && (addr.Unmap() != hostLoopback || c.Target.Port() != 5432 || c.Proto != TCP) {
		t.Fatalf("%+v of %+v reaches loopback: %+v", c, config.Rules, verdict)
	}
	if special && class != ClassLoopback && verdict.Allowed && !named(config, addr) {
		t.Fatalf("%+v of %+v: %s is %s and no rule names it: %+v", c, config.Rules, addr, class, verdict)
	}
	if answer := rules.Answer("api.example.com", addr); special && answer.Allowed && !named(config, addr) {
		t.Fatalf("%s of %+v is an answer: %+v", addr, config.Rules, answer)
	}
	if len(c.Pinned) == 0 && verdict.Allowed && class == ClassPublic && verdict.Name != "" {
		t.Fatalf("%+v: a name that led nowhere allowed it: %+v", c, verdict)
	}
	checkDeny(t, config, c, verdict)
	return special && class != ClassLoopback && verdict.Allowed
}

// checkDeny checks that one more deny rule for exactly this address refuses it.
func checkDeny(t *testing.T, config Config, c Connection, before Verdict) {
	place := c.Target.Addr().WithZone("").Unmap().String()
	if strings.Contains(place, ":") {
		place = "[" + place + "]"
	}
	config.Rules = append(slices.Clone(config.Rules), agent.EgressRule{Deny: true, Target: place, Source: "last"})
	rules, err := New(config)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	if after := rules.Connect(c); after.Allowed {
		t.Fatalf("%+v is denied and allowed: %+v, before %+v", c, after, before)
	}
}

func FuzzNothingSpecialWithoutARuleThatNamesIt(f *testing.F) {
	f.Add([]byte{1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Add([]byte{0, 1, 1, 1, 0, 3, 2, 60, 1, 32, 2, 60, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) { checkSafety(t, data) })
}

// TestSafetyOfManyWorlds runs the fuzz target's check on random bytes. It also checks that
// some requests are allowed.
func TestSafetyOfManyWorlds(t *testing.T) {
	t.Parallel()
	seen, worlds := 0, 40_000
	if testing.Short() {
		worlds = 5_000
	}
	for seed := range uint64(worlds) {
		if checkSafety(t, stream(seed)) {
			seen++
		}
	}
	if seen < worlds/100 {
		t.Errorf("only %d of the worlds allow a special address", seen)
	}
}

// stream is splitmix64: the same bytes on every machine.
func stream(seed uint64) []byte {
	var data []byte
	for state := seed * 0x9e3779b97f4a7c15; len(data) < 96; {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		data = binary.LittleEndian.AppendUint64(data, z^z>>31)
	}
	return data
}
