package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// rulesOf makes rules from texts as on a command line: "-x" denies x.
func rulesOf(t testing.TB, mode string, lines ...string) *Rules {
	t.Helper()
	config := Config{Mode: mode, HostPorts: []uint16{5432}, IsHost: func(addr netip.Addr) bool { return slices.Contains(hostAddresses, addr) || addr.IsLoopback() }}
	for _, line := range lines {
		if target, deny := strings.CutPrefix(line, "-"); deny {
			config.Rules = append(config.Rules, agent.EgressRule{Deny: true, Target: target, Source: "--deny"})
		} else {
			config.Rules = append(config.Rules, agent.EgressRule{Target: line, Source: "--allow"})
		}
	}
	rules, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

var hostAddresses = []netip.Addr{
	netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("93.184.216.99"), netip.MustParseAddr("2606:4700::99"), netip.MustParseAddr("fe80::99"),
}

// short formats a verdict for tests: "+" or "-", the reason, and the rule.
func short(v Verdict) string {
	text := "-" + v.Reason
	if v.Allowed {
		text = "+" + v.Reason
	}
	if v.Rule != "" {
		text += " " + v.Rule
	}
	if v.Verify != VerifyNone {
		text += " verify=" + string(v.Verify)
	}
	return text
}

func connection(text string, pinned ...Name) Connection {
	proto, target, found := strings.Cut(text, "://")
	if !found {
		proto, target = string(TCP), text
	}
	return Connection{Proto: Proto(proto), Target: netip.MustParseAddrPort(target), Pinned: pinned}
}

func TestConnectByAddress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode, rules, target, want string
	}{
		{"allowlist", "", "93.184.216.34:443", "-no-rule"},
		{"none", "", "93.184.216.34:443", "-mode-none"},
		{"", "", "93.184.216.34:443", "-mode-none"},
		{"", "93.184.216.34", "93.184.216.34:443", "+rule 93.184.216.34"},
		{"", "93.184.216.34", "93.184.216.34:80", "+rule 93.184.216.34"},
		{"", "93.184.216.34", "93.184.216.34:22", "-port"},
		{"", "93.184.216.34", "udp://93.184.216.34:443", "-port"},
		{"", "udp://93.184.216.34", "udp://93.184.216.34:443", "+rule udp://93.184.216.34"},
		{"", "udp://93.184.216.34", "93.184.216.34:443", "-port"},
		{"", "93.184.216.34:*", "93.184.216.34:1", "+rule 93.184.216.34:*"},
		{"", "93.184.216.34:8000-8100", "93.184.216.34:8100", "+rule 93.184.216.34:8000-8100"},
		{"", "93.184.216.34:8000-8100", "93.184.216.34:8101", "-port"},
		{"", "93.184.216.34", "93.184.216.35:443", "-no-rule"},
		{"", "93.184.216.34", "[::ffff:93.184.216.34]:443", "+rule 93.184.216.34"},
		{"", "10.1.0.0/16:5432", "10.1.255.1:5432", "+rule 10.1.0.0/16:5432"},
		{"", "10.1.0.0/16:5432", "10.2.0.1:5432", "-private"},
		{"", "[2606:4700::]/32", "[2606:4700::1111]:443", "+rule [2606:4700::]/32"},

		{"public", "", "93.184.216.34:25", "+rule tcp://public:*"},
		{"public", "", "udp://93.184.216.34:443", "-port"},
		{"public", "udp://public:443", "udp://93.184.216.34:443", "+rule udp://public:443"},
		{"public", "", "10.1.2.3:443", "-private"},
		{"public", "", "100.64.1.1:443", "-cgnat"},
		{"public", "", "169.254.169.254:80", "-metadata"},
		{"public", "", "168.63.129.16:80", "-metadata"},
		{"public", "", "169.254.1.1:80", "-link-local"},
		{"public", "", "224.0.0.251:443", "-multicast"},
		{"public", "", "255.255.255.255:443", "-broadcast"},
		{"public", "", "198.51.100.1:443", "-documentation"},
		{"public", "", "240.0.0.1:443", "-reserved"},
		{"public", "", "93.184.216.99:443", "-host"},
		{"public", "", "10.0.0.5:443", "-host"},
		{"public", "", "[2606:4700::99]:443", "-host"},
		{"public", "", "127.0.0.1:80", "-loopback"},
		{"public", "", "127.0.0.2:5432", "-loopback"},
		{"public", "", "0.0.0.0:5432", "-loopback"},
		{"public", "", "[::]:5432", "-loopback"},
		{"public", "", "[::1]:5432", "-loopback"},
		{"public", "", "[64:ff9b::a01:203]:443", "-private"},
		{"public", "", "[64:ff9b::808:808]:443", "+rule tcp://public:*"},
		{"public", "", "[64:ff9b::5db8:d863]:443", "-host"},
		{"public", "", "[2002:5db8:d863::1]:443", "-host"},
		{"public", "", "[64:ff9b::7f00:1]:5432", "-loopback"},
		{"public", "", "[::ffff:169.254.169.254]:80", "-metadata"},
		{"public", "private", "10.1.2.3:443", "+rule private"},
		{"public", "-93.184.216.0/24", "93.184.216.34:25", "-deny 93.184.216.0/24"},
		{"public", "-93.184.216.34:25", "93.184.216.34:443", "+rule tcp://public:*"},
		{"public", "-public:25", "93.184.216.34:25", "-deny public:25"},
		{"public", "-tcp://public", "93.184.216.34:443", "-deny tcp://public"},
		{"public", "-udp://public", "93.184.216.34:443", "+rule tcp://public:*"},
		{"public", "-8.8.8.8", "[64:ff9b::808:808]:443", "-deny 8.8.8.8"},
		{"public", "-8.0.0.0/8", "[2002:808:808::1]:443", "-deny 8.0.0.0/8"},

		// classes that a broad network does not include
		{"", "0.0.0.0/0", "93.184.216.34:443", "+rule 0.0.0.0/0"},
		{"", "0.0.0.0/0:*", "10.1.2.3:443", "-private"},
		{"", "0.0.0.0/0:*", "169.254.169.254:80", "-metadata"},
		{"", "0.0.0.0/0:*", "93.184.216.99:443", "-host"},
		{"", "0.0.0.0/0:*", "127.0.0.1:80", "-loopback"},
		{"", "[::]/0:*", "[fd00::1]:443", "-private"},
		{"", "[::]/0:*", "[64:ff9b::a01:203]:443", "-private"},
		{"", "[64:ff9b::]/96:*", "[64:ff9b::a9fe:a9fe]:80", "-metadata"},
		{"", "[64:ff9b::a01:203]", "[64:ff9b::a01:203]:443", "+rule [64:ff9b::a01:203]"},
		{"", "10.1.2.3", "[64:ff9b::a01:203]:443", "-private"},
		{"", "10.0.0.0/8", "10.0.0.5:443", "-host"},
		{"", "private:*", "10.0.0.5:443", "-host"},
		{"", "10.0.0.5", "10.0.0.5:443", "+rule 10.0.0.5"},
		{"", "host", "10.0.0.5:443", "+rule host"},
		{"", "host", "93.184.216.99:443", "+rule host"},
		{"", "host:*", "127.0.0.1:80", "-loopback"},
		{"", "host:*", "10.1.2.3:80", "-private"},
		{"", "private", "10.1.2.3:443", "+rule private"},
		{"", "private", "100.64.1.1:443", "+rule private"},
		{"", "private", "[fd00::1]:443", "+rule private"},
		{"", "private", "169.254.1.1:443", "-link-local"},
		{"", "private", "100.100.100.200:80", "-metadata"},
		{"", "private", "[fd00:ec2::254]:80", "-metadata"},
		{"", "100.64.0.0/10", "100.100.100.200:80", "-metadata"},
		{"", "169.254.0.0/16", "169.254.169.254:80", "-metadata"},
		{"", "169.254.0.0/16", "169.254.1.1:80", "+rule 169.254.0.0/16"},
		{"", "169.254.169.254", "169.254.169.254:80", "+rule 169.254.169.254"},
		{"", "metadata", "169.254.169.254:80", "+rule metadata"},
		{"", "metadata", "168.63.129.16:80", "+rule metadata"},
		{"", "metadata", "169.254.1.1:80", "-link-local"},
		{"", "198.18.0.0/15", "198.18.5.5:80", "+rule 198.18.0.0/15"},
		{"", "udp://224.0.0.251:5353", "udp://224.0.0.251:5353", "+rule udp://224.0.0.251:5353"},

		// deny wins over allow, however narrow either is
		{"", "10.1.2.3 -10.0.0.0/8", "10.1.2.3:443", "-deny 10.0.0.0/8"},
		{"", "-private 10.1.2.3", "10.1.2.3:443", "-deny private"},
		{"", "-private host", "10.0.0.5:443", "-deny private"},
		{"", "-public host", "93.184.216.99:443", "-deny public"},
		{"", "-host 10.0.0.0/8", "10.0.0.5:443", "-deny host"},
		{"", "-metadata 169.254.169.254", "169.254.169.254:80", "-deny metadata"},
		{"", "-10.1.2.3 [64:ff9b::a01:203]", "[64:ff9b::a01:203]:443", "-deny 10.1.2.3"},

		// --host-port 5432 is one port of one address
		{"none", "", "127.0.0.1:5432", "+rule tcp://127.0.0.1:5432"},
		{"none", "", "[::ffff:127.0.0.1]:5432", "+rule tcp://127.0.0.1:5432"},
		{"none", "", "127.0.0.1:5433", "-loopback"},
		{"none", "", "udp://127.0.0.1:5432", "-loopback"},
		{"none", "", "[::1]:5432", "-loopback"},
		{"none", "-host", "127.0.0.1:5432", "-deny host"},
		{"none", "-127.0.0.0/8:5432", "127.0.0.1:5432", "-deny 127.0.0.0/8:5432"},

		{"public", "", "93.184.216.34:0", "-invalid"},
		{"public", "", "sctp://93.184.216.34:80", "-invalid"},
		{"public", "", "[fe80::1%eth0]:80", "-invalid"},
		{"public", "", "[2606:4700::1111%eth0]:80", "-invalid"},
	} {
		rules := rulesOf(t, row.mode, strings.Fields(row.rules)...)
		if got := short(rules.Connect(connection(row.target))); got != row.want {
			t.Errorf("%s [%s] %s: %s, want %s", row.mode, row.rules, row.target, got, row.want)
		}
	}
}

func TestConnectByName(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode, rules, target string
		pinned              []Name
		want                string
	}{
		{"", "api.example.com", "93.184.216.34:443", []Name{"api.example.com"}, "+rule api.example.com verify=must"},
		{"", "api.example.com", "93.184.216.34:80", []Name{"api.example.com"}, "+rule api.example.com verify=must"},
		{"", "api.example.com", "93.184.216.34:443", nil, "-no-rule"},
		{"", "api.example.com", "93.184.216.34:443", []Name{"www.example.com"}, "-no-rule"},
		{"", "api.example.com", "93.184.216.34:22", []Name{"api.example.com"}, "-port"},
		{"", "api.example.com", "udp://93.184.216.34:443", []Name{"api.example.com"}, "-port"},
		{"", "udp://api.example.com:443", "udp://93.184.216.34:443", []Name{"api.example.com"}, "+rule udp://api.example.com:443"},
		{"", "db.example.com:5432", "93.184.216.34:5432", []Name{"db.example.com"}, "+rule db.example.com:5432"},
		{"", "*.example.com:*", "93.184.216.34:22", []Name{"a.b.c.example.com"}, "+rule *.example.com:*"},
		{"", "*.example.com:*", "93.184.216.34:22", []Name{"example.com"}, "-no-rule"},
		{"", "*.example.com:*", "93.184.216.34:22", []Name{"badexample.com"}, "-no-rule"},
		{"", "example.com:*", "93.184.216.34:22", []Name{"a.example.com"}, "-no-rule"},
		{"", "*.example.com:* -secret.example.com", "93.184.216.34:22", []Name{"secret.example.com"}, "-deny secret.example.com"},
		{"", "api.example.com:* -*.example.com:22", "93.184.216.34:22", []Name{"api.example.com"}, "-deny *.example.com:22"},
		{"", "api.example.com:* -*.example.com:22", "93.184.216.34:23", []Name{"api.example.com"}, "+rule api.example.com:*"},
		// two names at one address: nothing shows which is meant, so deny wins over allow
		{"", "a.example.com:* b.example.com:* -b.example.com:22", "93.184.216.34:22", []Name{"a.example.com", "b.example.com"}, "-deny b.example.com:22"},
		// if the client sends its name, that decides
		{"", "a.example.com:* b.example.com:* -b.example.com:443", "93.184.216.34:443", []Name{"b.example.com", "a.example.com"}, "+rule a.example.com:* verify=must"},
		{"", "b.example.com:* -b.example.com:443", "93.184.216.34:443", []Name{"b.example.com"}, "-deny b.example.com:443"},

		// a name rule never allows an address that is not public
		{"", "api.example.com:*", "10.1.2.3:22", []Name{"api.example.com"}, "-private"},
		{"", "api.example.com:*", "169.254.169.254:80", []Name{"api.example.com"}, "-metadata"},
		{"", "api.example.com:*", "10.0.0.5:22", []Name{"api.example.com"}, "-host"},
		{"", "api.example.com:*", "127.0.0.1:80", []Name{"api.example.com"}, "-loopback"},
		{"", "api.example.com:22 10.1.2.3:80", "10.1.2.3:22", []Name{"api.example.com"}, "-port"},
		{"", "api.example.com:22 10.1.2.3:22", "10.1.2.3:22", []Name{"api.example.com"}, "+rule 10.1.2.3:22"},

		// an address rule needs no name, but a denied name is still looked for
		{"public", "", "93.184.216.34:443", []Name{"api.example.com"}, "+rule tcp://public:*"},
		{"public", "-evil.test", "93.184.216.34:443", nil, "+rule tcp://public:* verify=deny"},
		{"public", "-evil.test", "93.184.216.34:22", nil, "+rule tcp://public:*"},
		{"public", "-evil.test:22", "93.184.216.34:443", nil, "+rule tcp://public:*"},
		{"public", "-evil.test:22", "93.184.216.34:22", []Name{"evil.test"}, "-deny evil.test:22"},
		{"public", "-udp://evil.test", "93.184.216.34:443", []Name{"evil.test"}, "+rule tcp://public:*"},
		{"", "93.184.216.34 -*.evil.test", "93.184.216.34:443", nil, "+rule 93.184.216.34 verify=deny"},
	} {
		rules := rulesOf(t, row.mode, strings.Fields(row.rules)...)
		if got := short(rules.Connect(connection(row.target, row.pinned...))); got != row.want {
			t.Errorf("%s [%s] %s %v: %s, want %s", row.mode, row.rules, row.target, row.pinned, got, row.want)
		}
	}
}

// TestTheShownName: the second request, with the name from the first bytes.
func TestTheShownName(t *testing.T) {
	t.Parallel()
	both := []Name{"api.example.com", "www.example.com"}
	for _, row := range []struct {
		mode, rules string
		pinned      []Name
		shown       Name
		want        string
		name        Name
	}{
		{"", "api.example.com", both, "api.example.com", "+rule api.example.com", "api.example.com"},
		{"", "*.example.com", both, "www.example.com", "+rule *.example.com", "www.example.com"},
		{"", "api.example.com", both, "", "-no-name", ""},
		{"", "api.example.com", both, "www.example.com", "-mismatch", ""},
		{"", "api.example.com", both, "evil.test", "-mismatch", ""},
		{"", "*.example.com", both, "other.example.com", "-mismatch", ""}, // allowed, but this address was not an answer for it
		{"", "*.example.com -www.example.com", both, "www.example.com", "-deny www.example.com", ""},
		{"", "*.example.com -www.example.com", []Name{"www.example.com"}, "www.example.com", "-deny www.example.com", ""},
		{"", "api.example.com", nil, "api.example.com", "-no-rule", ""}, // the sent name does not replace the pin

		{"public", "-evil.test", nil, "", "+rule tcp://public:*", ""},
		{"public", "-evil.test", nil, "good.test", "+rule tcp://public:*", ""},
		{"public", "-evil.test", nil, "evil.test", "-deny evil.test", ""},
		{"public", "-*.evil.test", nil, "a.evil.test", "-deny *.evil.test", ""},
		{"public", "-evil.test:443", []Name{"evil.test"}, "", "-deny evil.test:443", ""},
		{"public", "-evil.test:443", []Name{"evil.test"}, "cover.test", "-deny evil.test:443", ""},
		{"public", "-evil.test:443", []Name{"evil.test", "good.test"}, "good.test", "+rule tcp://public:*", ""},
		{"public", "", nil, "whatever.test", "+rule tcp://public:*", ""},
	} {
		c := connection("93.184.216.34:443", row.pinned...)
		c.Looked, c.Shown = true, row.shown
		got := rulesOf(t, row.mode, strings.Fields(row.rules)...).Connect(c)
		if short(got) != row.want || got.Name != row.name {
			t.Errorf("%s [%s] %v shows %q: %s %q, want %s", row.mode, row.rules, row.pinned, row.shown, short(got), got.Name, row.want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode, rules string
		name        Name
		want        string
	}{
		{"", "api.example.com:8443", "api.example.com", "+rule api.example.com:8443"},
		{"", "udp://api.example.com:443", "api.example.com", "+rule udp://api.example.com:443"},
		{"", "api.example.com", "example.com", "-no-rule"},
		{"", "*.example.com", "a.b.example.com", "+rule *.example.com"},
		{"", "*.example.com", "example.com", "-no-rule"},
		{"", "*.example.com -secret.example.com", "secret.example.com", "-deny secret.example.com"},
		{"", "*.example.com -*.example.com", "a.example.com", "-deny *.example.com"},
		{"", "a.example.com -a.example.com:22", "a.example.com", "+rule a.example.com"},
		{"", "a.example.com -tcp://a.example.com", "a.example.com", "+rule a.example.com"},
		{"none", "", "api.example.com", "-mode-none"},
		{"public", "", "anything.test", "+rule tcp://public:*"},
		{"public", "-anything.test", "anything.test", "-deny anything.test"},
		{"", "public:5432", "anything.test", "+rule public:5432"},
		// queries leave only for names that a rule allows, or with public
		{"", "private", "db.corp.test", "-no-rule"},
		{"", "10.0.0.0/8", "db.corp.test", "-no-rule"},
		{"", "0.0.0.0/0", "db.corp.test", "-no-rule"},
		{"public", "", "localhost", "-loopback"},
		{"public", "", "a.localhost", "-loopback"},
		// reverse look-ups follow the address
		{"public", "", "34.216.184.93.in-addr.arpa", "+rule tcp://public:*"},
		{"public", "", "3.2.1.10.in-addr.arpa", "-no-rule"},
		{"public", "", "2.1.10.in-addr.arpa", "-no-rule"},
		{"public", "-93.184.216.34", "34.216.184.93.in-addr.arpa", "-deny 93.184.216.34"},
		{"", "10.1.2.0/24", "3.2.1.10.in-addr.arpa", "+rule 10.1.2.0/24"},
		{"", "*.in-addr.arpa", "3.2.1.10.in-addr.arpa", "+rule *.in-addr.arpa"},
	} {
		if got := short(rulesOf(t, row.mode, strings.Fields(row.rules)...).Resolve(row.name)); got != row.want {
			t.Errorf("%s [%s] %s: %s, want %s", row.mode, row.rules, row.name, got, row.want)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ mode, rules, addr, want string }{
		{"", "api.example.com", "93.184.216.34", "+rule api.example.com"},
		{"", "www.example.com", "93.184.216.34", "-no-rule"},
		{"", "api.example.com", "10.1.2.3", "-rebinding"},
		{"", "api.example.com", "::ffff:10.1.2.3", "-rebinding"},
		{"", "api.example.com", "64:ff9b::10.1.2.3", "-rebinding"},
		{"", "api.example.com", "169.254.169.254", "-rebinding"},
		{"", "api.example.com", "127.0.0.1", "-rebinding"},
		{"", "api.example.com", "0.0.0.0", "-rebinding"},
		{"", "api.example.com", "::", "-rebinding"},
		{"", "api.example.com", "93.184.216.99", "-rebinding"},
		{"", "api.example.com", "fe80::1%eth0", "-rebinding"},
		{"", "api.example.com 0.0.0.0/0:*", "10.1.2.3", "-rebinding"},
		{"", "api.example.com host:*", "127.0.0.1", "-rebinding"},
		{"", "api.example.com 10.1.0.0/16:5432", "10.1.2.3", "+rule 10.1.0.0/16:5432"},
		{"", "api.example.com 10.1.0.0/16:5432", "10.2.2.3", "-rebinding"},
		{"", "api.example.com private", "10.1.2.3", "+rule private"},
		{"", "api.example.com private", "10.0.0.5", "-rebinding"},
		{"", "api.example.com host", "10.0.0.5", "+rule host"},
		{"", "api.example.com metadata", "169.254.169.254", "+rule metadata"},
		{"", "api.example.com -93.184.216.0/24", "93.184.216.34", "-deny 93.184.216.0/24"},
		{"", "api.example.com -93.184.216.0/24:22", "93.184.216.34", "+rule api.example.com"},
		{"", "api.example.com private -10.1.2.3", "10.1.2.3", "-deny 10.1.2.3"},
		{"public", "", "93.184.216.34", "+rule tcp://public:*"},
		{"public", "", "10.1.2.3", "-rebinding"},
		{"public", "private", "10.1.2.3", "+rule private"},
	} {
		got := rulesOf(t, row.mode, strings.Fields(row.rules)...).Answer("api.example.com", netip.MustParseAddr(row.addr))
		if short(got) != row.want {
			t.Errorf("%s [%s] %s: %s, want %s", row.mode, row.rules, row.addr, short(got), row.want)
		}
	}
}

func TestModeHostDecidesNothing(t *testing.T) {
	t.Parallel()
	rules, err := New(Config{Mode: agent.NetworkHost})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []Verdict{rules.Resolve("a.test"), rules.Answer("a.test", netip.MustParseAddr("10.1.2.3")), rules.Connect(connection("127.0.0.1:22"))} {
		if short(got) != "+mode-host" {
			t.Errorf("%+v", got)
		}
	}
}

// A rule for the addresses of a name takes clients that show no name, at those addresses alone,
// and never one that shows a denied name. The control is a rule for the name.
func TestAddressesOfAName(t *testing.T) {
	t.Parallel()
	const at, elsewhere = "93.184.216.34:443", "93.184.216.35:443"
	silent := func(c Connection) Connection { c.Looked = true; return c }
	showing := func(c Connection, name Name) Connection { c.Looked, c.Shown = true, name; return c }
	for _, row := range []struct {
		rules string
		c     Connection
		want  string
	}{
		{"ssh.example", connection(at, "ssh.example"), "+rule ssh.example verify=must"},
		{"ssh.example", silent(connection(at, "ssh.example")), "-no-name"},
		{"@ssh.example", connection(at, "ssh.example"), "+rule @ssh.example"},
		{"ssh.example @ssh.example", connection(at, "ssh.example"), "+rule @ssh.example"},
		{"other.example @ssh.example", connection(at, "other.example", "ssh.example"), "+rule @ssh.example"},
		{"@ssh.example", connection(elsewhere, "other.example"), "-no-rule"},
		{"@ssh.example", connection("93.184.216.34:22", "ssh.example"), "-port"},
		{"@ssh.example", connection("10.1.2.3:443", "ssh.example"), "-private"},
		{"@ssh.example -bad.example", connection(at, "ssh.example"), "+rule @ssh.example verify=deny"},
		{"@ssh.example -bad.example", silent(connection(at, "ssh.example")), "+rule @ssh.example"},
		{"@ssh.example -bad.example", showing(connection(at, "ssh.example"), "bad.example"), "-deny bad.example"},
		{"@ssh.example -bad.example", silent(connection(at, "bad.example", "ssh.example")), "-deny bad.example"},
	} {
		if got := short(rulesOf(t, agent.NetworkAllowlist, strings.Fields(row.rules)...).Connect(row.c)); got != row.want {
			t.Errorf("%s, %+v: %s, want %s", row.rules, row.c, got, row.want)
		}
	}
	v := rulesOf(t, agent.NetworkAllowlist, "ssh.example").Connect(silent(connection(at, "ssh.example")))
	if v.Hint != "--allow @ssh.example:443" {
		t.Error(v.Hint)
	}
	for _, rule := range []agent.EgressRule{{Target: "@*.example.com"}, {Target: "git@ssh.example"}, {Target: "@192.0.2.1"}, {Target: "@public"}, {Target: "@ssh.example", Deny: true}} {
		if _, err := New(Config{Rules: []agent.EgressRule{rule}}); err == nil {
			t.Errorf("%+v is accepted", rule)
		}
	}
}
