package egress

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestRulesThatCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	allow := func(targets ...string) (lines []agent.EgressRule) {
		for _, target := range targets {
			lines = append(lines, agent.EgressRule{Target: target, Source: "--allow"})
		}
		return lines
	}
	for _, row := range []struct {
		config              Config
		step, message, hint string
	}{
		{Config{Mode: "internet"}, "--network", `no mode "internet"`, "public"},
		{Config{Mode: agent.NetworkNone, Rules: allow("a.test")}, "--allow", "mode none", "allowlist"},
		{Config{Mode: agent.NetworkHost, Rules: []agent.EgressRule{{Deny: true, Target: "a.test", Source: "--deny"}}}, "--deny", "mode host", "allowlist"},
		{Config{Mode: agent.NetworkHost, HostPorts: []uint16{80}}, "--host-port", "already", "leave"},
		{Config{HostPorts: []uint16{0}}, "--host-port", "no port", "65535"},
		{Config{Rules: allow("a.test", "https://b.test/x")}, "--allow", "no URL", "write b.test:443"},
		{Config{Rules: []agent.EgressRule{{Target: "b test", Source: "policy p.yaml"}}}, "policy p.yaml", "holds", ""},
		{Config{Rules: allow("127.0.0.1:5432")}, "--allow", "the agent itself", "--host-port 5432 opens"},
		{Config{Rules: allow("localhost:5432")}, "--allow", "the agent itself", "--host-port 5432 opens"},
		{Config{Rules: allow("*.my.localhost")}, "--allow", "the agent itself", "--host-port N opens"},
		{Config{Rules: allow("[::1]")}, "--allow", "the agent itself", "--host-port N opens"},
		{Config{Rules: allow("0.0.0.0:80")}, "--allow", "the agent itself", "--host-port 80 opens"},
		{Config{Rules: allow("[::ffff:127.0.0.1]:80")}, "--allow", "the agent itself", "--host-port 80 opens"},
		{Config{Rules: allow("[64:ff9b::127.0.0.1]:80")}, "--allow", "the agent itself", "--host-port 80 opens"},
		{Config{Rules: allow("127.0.0.0/8:*")}, "--allow", "the agent itself", "--host-port N opens"},
	} {
		rules, err := New(row.config)
		var known *agent.Error
		if !errors.As(err, &known) || rules != nil {
			t.Errorf("%+v: %v", row.config, err)
			continue
		}
		if known.Kind != agent.KindInvalid || known.Step != row.step || !strings.Contains(known.Message, row.message) || !strings.Contains(known.Hint, row.hint) {
			t.Errorf("%+v: %+v", row.config, known)
		}
	}
}

func TestTheModeThatHolds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{}, agent.NetworkNone},
		{Config{Rules: []agent.EgressRule{{Target: "a.test"}}}, agent.NetworkAllowlist},
		{Config{Rules: []agent.EgressRule{{Deny: true, Target: "a.test"}}}, agent.NetworkNone},
		{Config{Mode: agent.NetworkNone, Rules: []agent.EgressRule{{Deny: true, Target: "a.test"}}, HostPorts: []uint16{1}}, agent.NetworkNone},
		{Config{Mode: agent.NetworkPublic, Rules: []agent.EgressRule{{Target: "private"}}}, agent.NetworkPublic},
		{Config{Mode: agent.NetworkAllowlist}, agent.NetworkAllowlist},
		{Config{Mode: agent.NetworkHost}, agent.NetworkHost},
	} {
		rules, err := New(row.config)
		if err != nil || rules.mode != row.want {
			t.Errorf("%+v: %v, want %s", row.config, err, row.want)
		}
	}
}

func TestExplainIsTheOrderOfEvaluation(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, agent.NetworkPublic, "Private:5432", "-EVIL.test.", "udp://8.8.8.8:53", "-10.0.0.0/8:22", "0.0.0.0/0", "10.0.0.0/8", "140.82.112.0/20", "api.example.com")
	want := []Explained{
		{Deny: true, Rule: "evil.test", Protos: "tcp,udp", Ports: "*", Source: "--deny"},
		{Deny: true, Rule: "10.0.0.0/8:22", Protos: "tcp,udp", Ports: "22", Source: "--deny"},
		{Rule: "tcp://127.0.0.1:5432", Protos: "tcp", Ports: "5432", Source: "--host-port"},
		{Rule: "private:5432", Protos: "tcp", Ports: "5432", Source: "--allow"},
		{Rule: "udp://8.8.8.8:53", Protos: "udp", Ports: "53", Source: "--allow"},
		{Rule: "0.0.0.0/0", Protos: "tcp", Ports: "80,443", Source: "--allow", Note: "only the public addresses in it"},
		{Rule: "10.0.0.0/8", Protos: "tcp", Ports: "80,443", Source: "--allow", Note: "not the metadata services and this host's own addresses in it"},
		{Rule: "140.82.112.0/20", Protos: "tcp", Ports: "80,443", Source: "--allow"},
		{Rule: "api.example.com", Protos: "tcp", Ports: "80,443", Source: "--allow"},
		{Rule: "tcp://public:*", Protos: "tcp", Ports: "*", Source: "mode public"},
	}
	got := rules.Explain()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if len(rulesOf(t, agent.NetworkAllowlist).Explain()) != 1 {
		t.Error("more than the port of the host")
	}
}

// TestARefusalSaysHowToAsk: each hint that is a flag allows, when it is given, what was
// refused.
func TestARefusalSaysHowToAsk(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rules, target string
		pinned        []Name
		hint          string
	}{
		{"", "93.184.216.34:443", nil, "--allow 93.184.216.34:443"},
		{"", "93.184.216.34:443", []Name{"api.example.com"}, "--allow api.example.com:443"},
		{"api.example.com", "93.184.216.34:22", []Name{"api.example.com"}, "--allow api.example.com:22"},
		{"", "udp://93.184.216.34:443", nil, "--allow udp://93.184.216.34:443"},
		{"", "[2606:4700::1111]:443", nil, "--allow [2606:4700::1111]:443"},
		{"", "10.1.2.3:5432", nil, "--allow 10.1.2.3:5432"},
		{"", "100.64.1.1:22", nil, "--allow 100.64.1.1:22"},
		{"", "[64:ff9b::a01:203]:443", nil, "--allow [64:ff9b::a01:203]:443"},
		{"", "169.254.169.254:80", nil, "--allow metadata:80"},
		{"", "10.0.0.5:8080", nil, "--allow host:8080"},
		{"", "169.254.1.1:80", nil, "--allow 169.254.1.1:80"},
		{"", "udp://224.0.0.251:5353", nil, "--allow udp://224.0.0.251:5353"},
		{"", "127.0.0.1:6379", nil, "--host-port 6379"},
		{"10.1.2.3", "10.1.2.3:22", nil, "--allow 10.1.2.3:22"},
	} {
		lines := append([]string{"db.test"}, strings.Fields(row.rules)...)
		c := connection(row.target, row.pinned...)
		refusal := rulesOf(t, "", lines...).Connect(c)
		if refusal.Allowed || refusal.Hint != row.hint || refusal.Detail == "" {
			t.Errorf("%s: %+v, want the hint %s", row.target, refusal, row.hint)
		}
		if target, flag := strings.CutPrefix(row.hint, "--allow "); flag {
			if asked := rulesOf(t, "", append(lines, target)...).Connect(c); !asked.Allowed {
				t.Errorf("%s with %s: %+v", row.target, row.hint, asked)
			}
		}
	}
}

func TestADenialNamesTheRuleAndItsSource(t *testing.T) {
	t.Parallel()
	rules, err := New(Config{Rules: []agent.EgressRule{{Target: "*.example.com", Source: "--allow"}, {Deny: true, Target: "A.example.com", Source: "policy p.yaml"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := rules.Resolve("a.example.com")
	want := Verdict{Rule: "a.example.com", Source: "policy p.yaml", Reason: ReasonDeny,
		Detail: "a.example.com is denied by a.example.com (policy p.yaml)", Hint: "take the deny rule a.example.com (policy p.yaml) away"}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got := rules.Answer("b.example.com", hostLoopback); got.Hint != "--host-port PORT" || got.Reason != ReasonRebinding {
		t.Errorf("%+v", got)
	}
}

func TestWhyAsksAsAConnectionWould(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode, rules, host string
		port              uint16
		proto             Proto
		want              string
	}{
		{"", "api.example.com", "API.example.com", 443, TCP, "+rule api.example.com; +rule api.example.com verify=must; +rule api.example.com"},
		{"", "db.example.com:5432", "db.example.com", 5432, TCP, "+rule db.example.com:5432; +rule db.example.com:5432"},
		{"", "db.example.com:5432", "db.example.com", 22, TCP, "+rule db.example.com:5432; -port"},
		{"", "db.example.com:5432", "www.example.com", 443, TCP, "-no-rule"},
		{"public", "-evil.test:443", "evil.test", 443, TCP, "+rule tcp://public:*; +rule tcp://public:* verify=deny; -deny evil.test:443"},
		{"public", "-public:25 -8.8.8.8", "mail.test", 25, TCP, "+rule tcp://public:*; -deny public:25"},
		{"public", "", "quic.test", 443, UDP, "+rule tcp://public:*; -port"},
		{"public", "-evil.test", "93.184.216.34", 443, TCP, "+rule tcp://public:* verify=deny; +rule tcp://public:*"},
		{"", "private", "10.1.2.3", 443, TCP, "+rule private"},
		{"", "private", "[fd00::1]", 443, TCP, "+rule private"},
		{"", "", "localhost", 5432, TCP, "+rule tcp://127.0.0.1:5432"},
		{"", "", "localhost", 22, TCP, "-loopback"},
	} {
		steps, err := rulesOf(t, row.mode, strings.Fields(row.rules)...).Why(row.host, row.port, row.proto)
		if err != nil {
			t.Errorf("%s: %v", row.host, err)
			continue
		}
		var got []string
		for _, step := range steps {
			got = append(got, short(step.Verdict))
			if step.Question == "" || strings.Contains(step.Question, "invalid") {
				t.Errorf("%s: question %q", row.host, step.Question)
			}
		}
		if text := strings.Join(got, "; "); text != row.want {
			t.Errorf("%s [%s] %s:%d: %s, want %s", row.mode, row.rules, row.host, row.port, text, row.want)
		}
	}
}

// A caller who follows the hint reaches the target.
func TestWhyHintsWhatHelps(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{agent.NetworkNone, agent.NetworkAllowlist} {
		for _, host := range []string{"api.example.com", "192.0.2.1", "10.0.0.1", "2001:db8::1", "169.254.169.254"} {
			for _, proto := range []Proto{TCP, UDP} {
				for _, port := range []uint16{22, 53, 80, 443} {
					steps, err := rulesOf(t, mode).Why(host, port, proto)
					if err != nil {
						t.Fatal(err)
					}
					hint := steps[len(steps)-1].Verdict.Hint
					target, isRule := strings.CutPrefix(hint, "--allow ")
					if !isRule {
						t.Errorf("%s, %s port %d: the hint is %q", host, proto, port, hint)
						continue
					}
					steps, err = rulesOf(t, agent.NetworkAllowlist, target).Why(host, port, proto)
					if err != nil || !steps[len(steps)-1].Verdict.Allowed {
						t.Errorf("%s, %s port %d: with %s it is refused all the same: %v, %v", host, proto, port, hint, steps, err)
					}
				}
			}
		}
	}
}

func TestWhyRefusesNonsense(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, agent.NetworkPublic)
	for _, host := range []string{"", "0x7f.1", "a..b", "user@x.test"} {
		if steps, err := rules.Why(host, 443, TCP); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%q: %v, %v", host, steps, err)
		}
	}
	for _, host := range []string{"a.test", "10.1.2.3"} {
		if _, err := rules.Why(host, 0, TCP); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s, port 0: %v", host, err)
		}
		if _, err := rules.Why(host, 80, "icmp"); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s over icmp: %v", host, err)
		}
	}
}
