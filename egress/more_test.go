package egress

import (
	"slices"
	"testing"

	"clove.run/clove/agent"
)

func lines(deny bool, targets ...string) (rules []agent.EgressRule) {
	for _, target := range targets {
		rules = append(rules, agent.EgressRule{Target: target, Deny: deny})
	}
	return rules
}

func TestMoreThan(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		allow, deny         []string // of the base
		wideAllow, wideDeny []string
		targets, denials    []string
	}{
		{[]string{"*.example.com"}, nil, []string{"api.example.com", "other.test"}, nil, []string{"other.test"}, nil},
		{[]string{"public"}, []string{"evil.test"}, []string{"api.example.com"}, nil, nil, nil},
		{[]string{"public"}, []string{"*.evil.test"}, []string{"a.evil.test", "evil.test"}, nil, nil, []string{"*.evil.test"}},
		{[]string{"public"}, []string{"a.evil.test"}, []string{"*.evil.test"}, []string{"*.evil.test"}, nil, nil},
		{[]string{"public"}, []string{"a.evil.test", "evil.test:22"}, []string{"*.evil.test", "evil.test"}, nil, nil, []string{"a.evil.test"}},
		{[]string{"public"}, []string{"evil.test"}, []string{"@api.example.com"}, nil, nil, []string{"evil.test"}},
		{[]string{"public", "private"}, []string{"10.1.0.0/16"}, []string{"10.0.0.0/8"}, []string{"10.1.0.0/17"}, nil, []string{"10.1.0.0/16"}},
		{[]string{"public", "private"}, []string{"10.1.0.0/16"}, []string{"10.0.0.0/8", "public"}, []string{"10.0.0.0/12"}, nil, nil},
		{[]string{"public", "private"}, []string{"10.1.0.0/16"}, []string{"public", "*.example.com"}, nil, nil, nil},
		{[]string{"public"}, []string{"93.184.216.0/24"}, []string{"api.example.com"}, nil, nil, []string{"93.184.216.0/24"}},
		{[]string{"public", "64:ff9b::/96"}, []string{"93.184.216.0/24"}, []string{"64:ff9b::/96"}, nil, nil, []string{"93.184.216.0/24"}},
		{[]string{"public"}, []string{"udp://evil.test", "evil.test:8000-9000"}, []string{"evil.test"}, nil, nil, nil},
		{[]string{"public:*"}, []string{"evil.test:8000-9000"}, []string{"evil.test:9000-9100"}, []string{"evil.test:8000-8999"}, nil, []string{"evil.test:8000-9000"}},
	} {
		more, err := MoreThan(Config{Rules: append(lines(false, row.allow...), lines(true, row.deny...)...)},
			Config{Rules: append(lines(false, row.wideAllow...), lines(true, row.wideDeny...)...)})
		if err != nil || !slices.Equal(more.Targets, row.targets) || !slices.Equal(more.Denials, row.denials) {
			t.Errorf("%+v: %+v, %v", row, more, err)
		}
	}
	host, none := Config{Mode: agent.NetworkHost}, Config{Mode: agent.NetworkNone}
	for _, row := range []struct {
		base, wide Config
		more       bool
	}{{host, host, false}, {host, none, false}, {none, none, false}, {none, host, true}, {none, Config{Mode: agent.NetworkPublic}, true}, {Config{Mode: agent.NetworkPublic}, Config{Rules: lines(false, "public:*")}, false}} {
		if m, err := MoreThan(row.base, row.wide); err != nil || (len(m.Targets) > 0) != row.more {
			t.Errorf("%+v: %+v, %v", row, m, err)
		}
	}
	if _, err := MoreThan(none, Config{Rules: lines(false, "http://x")}); agent.KindOf(err) != agent.KindInvalid {
		t.Error(err)
	}
}

// moreWorld draws two configs of which the second often is a part of the first.
func moreWorld(w *world) (base, wide *Rules, baseConfig, wideConfig Config) {
	base, baseConfig = w.rules()
	wideConfig = Config{Mode: w.pick([]string{agent.NetworkAllowlist, baseConfig.Mode}), IsHost: baseConfig.IsHost}
	wideConfig.HostPorts = baseConfig.HostPorts
	add := func(deny bool, target string) {
		line := agent.EgressRule{Deny: deny, Target: target}
		if _, err := New(Config{Rules: []agent.EgressRule{line}}); err == nil {
			wideConfig.Rules = append(wideConfig.Rules, line)
		}
	}
	for _, line := range baseConfig.Rules {
		if w.next(3) > 0 {
			add(line.Deny, line.Target)
		}
	}
	for range w.next(3) {
		add(w.next(2) == 0, w.target())
	}
	if w.next(2) == 0 {
		add(false, w.pick([]string{"@api.example.com", "api.example.com:*", "*.evil.test:22", "a.evil.test"}))
	}
	wide, err := New(wideConfig)
	if err != nil {
		panic(err)
	}
	return base, wide, baseConfig, wideConfig
}

// holdMore checks one world: without more, each connection with names that wide gave out is one of
// base's. It reports how many connections wide allows, and whether base refuses one of them.
func holdMore(w *world) (nothingMore bool, allowed int, beyond *Connection) {
	base, wide, baseConfig, wideConfig := moreWorld(w)
	more, err := MoreThan(baseConfig, wideConfig)
	if err != nil {
		panic(err)
	}
	for range 12 {
		c := w.connection()
		c.Pinned = slices.DeleteFunc(c.Pinned, func(name Name) bool { return !wide.Answer(name, c.Target.Addr()).Allowed })
		if !slices.Contains(c.Pinned, c.Shown) && w.next(2) == 0 {
			c.Shown = ""
		}
		for _, name := range c.Pinned {
			if !base.Resolve(name).Allowed || !base.Answer(name, c.Target.Addr()).Allowed {
				beyond = &c
			}
		}
		if wide.Connect(c).Allowed {
			allowed++
			if !mayReach(base, c) {
				beyond = &c
			}
		}
	}
	return len(more.Targets)+len(more.Denials) == 0, allowed, beyond
}

// mayReach reports whether a run may make the connection, after it looked up all of the names or
// one of them: where no name is shown, a denied one among them decides, and a run need not ask
// for it.
func mayReach(r *Rules, c Connection) bool {
	if r.Connect(c).Allowed {
		return true
	}
	return slices.ContainsFunc(c.Pinned, func(name Name) bool {
		one := c
		one.Pinned = []Name{name}
		return r.Connect(one).Allowed
	})
}

// The control is the worlds with more: in many of them base refuses a connection of wide's.
func TestNothingMoreReachesNothingMore(t *testing.T) {
	t.Parallel()
	covered, connected, control := 0, 0, 0
	for seed := range uint64(12_000) {
		w := &world{slices.Concat(stream(seed), stream(seed+1<<32), stream(seed+2<<32))}
		nothing, allowed, beyond := holdMore(w)
		if !nothing {
			if beyond != nil {
				control++
			}
			continue
		}
		if covered++; allowed > 0 {
			connected++
		}
		if beyond != nil {
			_, _, base, wide := moreWorld(&world{slices.Concat(stream(seed), stream(seed+1<<32), stream(seed+2<<32))})
			t.Fatalf("%+v\nreaches %+v, which is beyond\n%+v", wide, *beyond, base)
		}
	}
	if covered < 800 || connected < 300 || control < 300 {
		t.Errorf("control: %d worlds have nothing more, in %d of them something connects; of the others %d reach further", covered, connected, control)
	}
}

func FuzzMoreThan(f *testing.F) {
	f.Add(stream(1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if nothing, _, beyond := holdMore(&world{data}); nothing && beyond != nil {
			t.Fatalf("it reaches %+v", *beyond)
		}
	})
}
