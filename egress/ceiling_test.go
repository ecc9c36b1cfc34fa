package egress

import (
	"net/netip"
	"slices"
	"testing"

	"clove.run/clove/agent"
)

func TestACeilingCovers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ceiling []string
		within  []string
		beyond  []string
	}{
		{[]string{"public"}, []string{"public", "api.example.com", "*.example.com:443", "93.184.216.34:80", "93.184.216.0/24"},
			[]string{"public:*", "api.example.com:22", "udp://api.example.com", "10.1.2.3", "private", "93.184.216.34:80-443"}},
		{[]string{"public:*"}, []string{"public:22-25", "public:*", "*.example.com:22"}, []string{"udp://public:*", "10.0.0.0/8:*"}},
		{[]string{"*.example.com"}, []string{"*.example.com", "api.example.com", "*.api.example.com:443"},
			[]string{"example.com", "badexample.com", "*.example.net", "public", "93.184.216.34"}},
		{[]string{"@api.example.com"}, []string{"@api.example.com", "api.example.com:443"}, []string{"@www.example.com", "*.api.example.com", "@api.example.com:22"}},
		{[]string{"*.example.com", "www.example.net"}, nil, []string{"@api.example.com", "@www.example.net"}},
		{[]string{"api.example.com"}, []string{"API.example.com.", "api.example.com:443"}, []string{"*.api.example.com", "www.api.example.com"}},
		{[]string{"10.1.0.0/16:5432"}, []string{"10.1.2.3:5432", "10.1.2.0/24:5432"}, []string{"10.1.2.3", "10.0.0.0/8:5432", "private:5432", "10.2.0.1:5432"}},
		{[]string{"private"}, []string{"10.1.2.3", "192.168.0.0/16", "100.64.0.9", "private"}, []string{"public", "93.184.216.34", "api.example.com", "fe80::1"}},
		{[]string{"0.0.0.0/0"}, []string{"0.0.0.0/0", "93.184.216.34", "93.0.0.0/8"}, []string{"10.1.2.3", "10.0.0.0/8", "public", "api.example.com", "2606:2800::/32"}},
		{[]string{"udp://9.9.9.9:53", "[2606:2800:220:1::1]:443"}, []string{"udp://9.9.9.9:53", "[2606:2800:220:1::1]:443"}, []string{"9.9.9.9:53", "udp://9.9.9.9:54"}},
		{nil, nil, []string{"public", "api.example.com"}},
	} {
		ceiling, err := NewCeiling(row.ceiling)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range append(slices.Clone(row.within), row.beyond...) {
			covered, err := ceiling.Covers(target)
			if want := slices.Contains(row.within, target); err != nil || covered != want {
				t.Errorf("%s covers %s: %t, %v; want %t", ceiling, target, covered, err, want)
			}
		}
	}
	if _, err := (Ceiling{}).Covers("http://x"); agent.KindOf(err) != agent.KindInvalid {
		t.Errorf("what is no target: %v", err)
	}
	for _, wrong := range []string{"http://x", "metadata", "host", "169.254.169.254", "localhost", "127.0.0.1:53", ""} {
		if c, err := NewCeiling([]string{wrong}); err == nil {
			t.Errorf("%q is a ceiling: %v", wrong, c)
		}
	}
}

// TestWhatIsCoveredOpensNoMore: in many random cases, what a covered rule allows is allowed by
// the ceiling's own rules.
func TestWhatIsCoveredOpensNoMore(t *testing.T) {
	t.Parallel()
	isHost := func(addr netip.Addr) bool { return slices.Contains(hostAddresses, addr) }
	covered, allowed := 0, 0
	for seed := range uint64(40_000) {
		w := &world{stream(seed)}
		target, most := w.target(), []string{w.target(), w.target()}
		if w.next(2) == 0 {
			most = append(most, w.pick([]string{"public:*", "private:*", "0.0.0.0/0:*", "*.example.com:*", "10.0.0.0/8:*"}))
		}
		ceiling, err := NewCeiling(most)
		if err != nil {
			continue
		}
		inner, err := New(Config{Rules: []agent.EgressRule{{Target: target}}, IsHost: isHost, User: true})
		if err != nil {
			continue
		}
		if is, err := ceiling.Covers(target); err != nil || !is {
			continue
		}
		covered++
		outer, err := New(Config{Rules: allowing(most), IsHost: isHost})
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			c := w.connection()
			if inner.Connect(c).Allowed {
				allowed++
				if v := outer.Connect(c); !v.Allowed {
					t.Fatalf("%s within %s opens %+v: %+v", target, ceiling, c, v)
				}
			}
			for _, name := range c.Pinned {
				if inner.Answer(name, c.Target.Addr()).Allowed && !outer.Answer(name, c.Target.Addr()).Allowed {
					t.Fatalf("%s within %s gives %s the answer %s", target, ceiling, name, c.Target.Addr())
				}
			}
		}
	}
	if covered < 500 || allowed < 500 {
		t.Errorf("control: %d targets were covered, %d connections allowed", covered, allowed)
	}
}

// connection is one whose client has sent its first bytes.
func (w *world) connection() Connection {
	names := []Name{"api.example.com", "evil.test", "a.evil.test", "example.com"}
	c := Connection{Proto: TCP, Looked: true}
	if w.next(4) == 0 {
		c.Proto = UDP
	}
	for _, name := range names {
		if w.next(2) == 0 {
			c.Pinned = append(c.Pinned, name)
		}
	}
	if len(c.Pinned) > 0 && w.next(2) == 0 {
		c.Shown = c.Pinned[w.next(len(c.Pinned))]
	}
	addr := w.addr().WithZone("")
	if w.next(2) == 0 {
		addr = netip.MustParseAddr("93.184.216.34")
	}
	c.Target = netip.AddrPortFrom(addr, []uint16{22, 50, 80, 443}[w.next(4)])
	return c
}

// TestMetadataAndTheHostAreForRoot: by keyword, by address, and if an address becomes the
// host's later. The control is the same rule in a run of root's.
func TestMetadataAndTheHostAreForRoot(t *testing.T) {
	t.Parallel()
	for target, address := range map[string]string{"metadata": "169.254.169.254", "169.254.169.254": "169.254.169.254", "[fd00:ec2::254]": "fd00:ec2::254",
		"168.63.129.16": "168.63.129.16", "host": "172.30.0.2", "172.30.0.2": "172.30.0.2", "172.30.0.3": "172.30.0.3"} {
		config := Config{Rules: []agent.EgressRule{{Target: target, Source: "--allow"}}}
		var later bool
		config.IsHost = func(addr netip.Addr) bool {
			return addr.String() == "172.30.0.2" || later && addr.String() == "172.30.0.3"
		}
		to := Connection{Proto: TCP, Target: netip.AddrPortFrom(netip.MustParseAddr(address), 80), Looked: true}
		roots, err := New(config)
		if err != nil || !roots.Connect(to).Allowed {
			t.Fatalf("control: root cannot allow %s: %v", target, err)
		}
		config.User = true
		users, err := New(config)
		if target != "172.30.0.3" {
			if agent.KindOf(err) != agent.KindPrivilege {
				t.Errorf("a user may allow %s: %v", target, err)
			}
			continue
		}
		if err != nil || !users.Connect(to).Allowed {
			t.Fatalf("control: a private address is not the host's yet: %v", err)
		}
		later = true
		if v := users.Connect(to); v.Allowed || v.Reason != string(ClassHost) || v.Hint != askRoot {
			t.Errorf("an address that became the host's: %+v", v)
		}
		if v := users.Answer("api.example.com", to.Target.Addr()); v.Allowed {
			t.Errorf("it is an answer: %+v", v)
		}
	}
}
