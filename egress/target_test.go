package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

func TestTargetsBecomeCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"api.example.com":              "api.example.com",
		"API.Example.com.":             "api.example.com",
		"api.example.com.:443":         "api.example.com:443",
		"api.example.com:443-443":      "api.example.com:443",
		"api.example.com:8000-8100":    "api.example.com:8000-8100",
		"api.example.com:*":            "api.example.com:*",
		"api.example.com:1-65535":      "api.example.com:*",
		"TCP://API.example.com:22":     "tcp://api.example.com:22",
		"udp://api.example.com":        "udp://api.example.com",
		"*.Example.com":                "*.example.com",
		"@SSH.Example.com.:443":        "@ssh.example.com:443",
		"tcp://*.a.b.example.com:*":    "tcp://*.a.b.example.com:*",
		"*.bücher.example:443":         "*.xn--bcher-kva.example:443",
		"db":                           "db",
		"db:5432":                      "db:5432",
		"1.2.3.4":                      "1.2.3.4",
		"1.2.3.4:53":                   "1.2.3.4:53",
		"1.2.3.4/32":                   "1.2.3.4",
		"10.1.0.0/16":                  "10.1.0.0/16",
		"10.1.0.0/16:5432":             "10.1.0.0/16:5432",
		"udp://10.0.0.0/8:*":           "udp://10.0.0.0/8:*",
		"0.0.0.0/0":                    "0.0.0.0/0",
		"2001:db8::1":                  "[2001:db8::1]",
		"2001:DB8:0:0:0:0:0:1":         "[2001:db8::1]",
		"2001:db8::/32":                "[2001:db8::]/32",
		"[2001:db8::1]":                "[2001:db8::1]",
		"[2001:db8::1]:443":            "[2001:db8::1]:443",
		"[2001:db8::]/32":              "[2001:db8::]/32",
		"[2001:db8::]/32:8000-8100":    "[2001:db8::]/32:8000-8100",
		"[2001:db8::/32]:443":          "[2001:db8::]/32:443",
		"[2001:db8::1/128]":            "[2001:db8::1]",
		"::1":                          "[::1]",
		"::/0":                         "[::]/0",
		"[::ffff:10.1.2.3]:5432":       "10.1.2.3:5432",
		"::ffff:10.1.2.3":              "10.1.2.3",
		"[::ffff:10.0.0.0]/104":        "10.0.0.0/8",
		"public":                       "public",
		"PUBLIC:*":                     "public:*",
		"udp://public:443":             "udp://public:443",
		"private:5432":                 "private:5432",
		"metadata":                     "metadata",
		"host:8080":                    "host:8080",
		"public.example.com":           "public.example.com",
		"host.docker.internal":         "host.docker.internal",
		"_grpc._tcp.example.com:50051": "_grpc._tcp.example.com:50051",
	} {
		got, err := ParseTarget(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
		if again, err := ParseTarget(got.String()); err != nil || again != got {
			t.Errorf("%q: its canonical text became %q, %v", text, again, err)
		}
	}
}

// TestWhatIsNoTarget: each refusal has a reason, and a hint with the right spelling if that
// can be known.
func TestWhatIsNoTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ reason, hint string }{
		"":                                     {"names no host", ""},
		"  ":                                   {"names no host", ""},
		"tcp://":                               {"names no host", ""},
		":443":                                 {"empty", ""},
		"https://api.example.com/v1?x=y":       {"no URL", "write api.example.com:443"},
		"http://api.example.com":               {"no URL", "write api.example.com:80"},
		"HTTPS://API.example.com:8443/":        {"no URL", "write api.example.com:8443"},
		"https://user:pass@api.example.com":    {"no URL", "write api.example.com:443"},
		"postgres://u:p@db.example.com/db":     {"no URL", "write db.example.com:5432"},
		"https://[2001:db8::1]/":               {"no URL", "write [2001:db8::1]:443"},
		"icmp://1.2.3.4":                       {"no URL", "write 1.2.3.4"},
		"https://":                             {"no URL", "write tcp://HOST:PORT or udp://HOST:PORT"},
		"tcp://https://api.example.com":        {"two protocols", "keep one"},
		"api.example.com/":                     {"path", "write api.example.com"},
		"api.example.com/v1/chat":              {"path", "write api.example.com"},
		"api.example.com:443/v1":               {"path", "write api.example.com:443"},
		"user@api.example.com":                 {"user name", "write api.example.com"},
		"git@github.com:22":                    {"user name", "write github.com:22"},
		"git@github.com:org/repo.git":          {"user name", "write github.com"},
		"user:pass@api.example.com":            {"user name", "write api.example.com"},
		"*":                                    {"lone *", "public"},
		"*:443":                                {"lone *", "public"},
		"*.com":                                {"two labels", "*.example.com"},
		"*.":                                   {"empty", ""},
		"*.*.example.com":                      {"more than one *", "any depth"},
		"*example.com":                         {"whole labels", "*.example.com"},
		"api.*.example.com":                    {"'*'", ""},
		"*.1.2.3.4":                            {"address", ""},
		"*.example.com.:":                      {"no port", ""},
		"api.example.com:":                     {"no port", ""},
		"api.example.com:0":                    {"no port", ""},
		"api.example.com:65536":                {"no port", ""},
		"api.example.com:0443":                 {"no port", ""},
		"api.example.com:+443":                 {"no port", ""},
		"api.example.com:-443":                 {"no port", ""},
		"api.example.com:443-":                 {"no port", ""},
		"api.example.com:80,443":               {"no port", ""},
		"api.example.com:https":                {"no port", ""},
		"api.example.com: 443":                 {"no port", ""},
		"api.example.com:\uff14\uff14\uff13":   {"no port", ""},
		"api.example.com:443-80":               {"empty", "write api.example.com:80-443"},
		"api.example.com:443:443":              {"more than one colon", "write api.example.com:443"},
		"10.1.2.3/8":                           {"no network address", "write 10.0.0.0/8 for the network, 10.1.2.3 for the address"},
		"10.0.0.0/33":                          {"network length", ""},
		"10.0.0.0/08":                          {"network length", ""},
		"10.0.0.0/":                            {"network length", ""},
		"10.0.0.0/255.0.0.0":                   {"network length", ""},
		"[2001:db8::1]/32":                     {"no network address", "write [2001:db8::]/32"},
		"2001:db8::/32:443":                    {"brackets", "write [2001:db8::]/32:443"},
		"[2001:db8::1":                         {"] is missing", ""},
		"[2001:db8::1]443":                     {"follows the bracket", ""},
		"[2001:db8::/32]/32":                   {"follows the bracket", ""},
		"[10.1.2.3]:80":                        {"brackets are for IPv6", ""},
		"[api.example.com]":                    {"brackets are for IPv6", ""},
		"[fe80::1%eth0]:80":                    {"zone", ""},
		"fe80::1%eth0":                         {"zone", ""},
		"[fe80::%eth0]/64":                     {"zone", ""},
		"[::ffff:0:0]/90":                      {"IPv4-mapped", ""},
		"fd00::1:443":                          {"could be a port", "write [fd00::1]:443 or [fd00::1:443]"},
		"::1:8080":                             {"could be a port", "write [::1]:8080 or [::1:8080]"},
		"1:2:3":                                {"neither an IPv6 address", ""},
		"public.":                              {"name of a group", "write public"},
		"\uff50ublic":                          {"name of a group", "write public"},
		"*.public":                             {"two labels", ""},
		"everything!":                          {"'!'", ""},
		"2130706433":                           {"a number", "four decimal numbers"},
		"0x7f.1:80":                            {"a number", "four decimal numbers"},
		"0177.0.0.1":                           {"a number", "four decimal numbers"},
		"127.1":                                {"a number", "four decimal numbers"},
		"tcp://169.254.43518":                  {"a number", "four decimal numbers"},
		"api.example.com\x00":                  {"control character", ""},
		"api.example.com%00.evil.test":         {"holds %", ""},
		"api\u3002example.com":                 {"a dot that is not a dot", ""},
		"api..example.com":                     {"empty label", ""},
		" api.example.com":                     {"' '", ""},
		strings.Repeat("a", 3000) + ".com:443": {"bytes", ""},
	} {
		got, err := ParseTarget(text)
		var known *agent.Error
		if !errors.As(err, &known) || known.Kind != agent.KindInvalid || got != (Target{}) {
			t.Errorf("%q became %q, %v", text, got, err)
			continue
		}
		if !strings.Contains(known.Message, want.reason) || !strings.Contains(known.Hint, want.hint) || (want.hint == "write" && known.Hint == "") {
			t.Errorf("%q: %q, hint %q; want %q", text, known.Message, known.Hint, want)
		}
	}
}

// TestHintsAreTargets: every target that a hint proposes is accepted.
func TestHintsAreTargets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://api.example.com/v1", "git@github.com:org/repo.git", "api.example.com:443/v1", "*.com", "x.com:90-80", "a.b:1:2", "*x.example.com"} {
		_, err := ParseTarget(text)
		var known *agent.Error
		if !errors.As(err, &known) {
			t.Fatalf("%q: %v", text, err)
		}
		if _, err := ParseTarget(strings.TrimPrefix(known.Hint, "write ")); err != nil {
			t.Errorf("%q: hint %q: %v", text, known.Hint, err)
		}
	}
}

func TestCanonicalTextRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawTarget(t)
		target, err := ParseTarget(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := ParseTarget(target.String())
		if err != nil || again != target || again.String() != target.String() {
			t.Fatalf("%q became %q, that became %q, %v", text, target, again, err)
		}
	})
}

// drawTarget draws valid targets, in all their spellings.
func drawTarget(t *rapid.T) string {
	proto := rapid.SampledFrom([]string{"", "", "tcp://", "udp://", "UDP://"}).Draw(t, "proto")
	ports := rapid.SampledFrom([]string{"", "", ":*", ":443", ":80", ":22", ":1-65535", ":80-443", ":65535"}).Draw(t, "ports")
	return proto + drawPlace(t) + ports
}

func drawPlace(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "place") {
	case 0:
		return string(rapid.SampledFrom(groups).Draw(t, "group"))
	case 1:
		addr := anyAddr(t)
		if addr.Is6() {
			return "[" + addr.String() + "]"
		}
		return addr.String()
	case 2:
		addr := anyAddr(t).Unmap()
		prefix, err := addr.Prefix(rapid.IntRange(0, addr.BitLen()).Draw(t, "bits"))
		if err != nil {
			t.Fatal(err)
		}
		if addr.Is6() {
			return fmt.Sprintf("[%s]/%d", withoutMapping(prefix).Addr(), prefix.Bits())
		}
		return prefix.String()
	}
	return rapid.SampledFrom([]string{"", "", "*."}).Draw(t, "wild") + rapid.SampledFrom(testNames).Draw(t, "name")
}

// withoutMapping skips ::ffff:0:0/90 and the like, which are refused.
func withoutMapping(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return p
}

var testNames = []string{"api.example.com", "API.EXAMPLE.com.", "example.com", "a.b.c.example.com", "bücher.example", "_x._tcp.example.com", "evil.test", "deep.evil.test"}

// FuzzParseTarget: an accepted target has one canonical text, which is ASCII and means the
// same.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"tcp://*.api.example.com:443", "[2001:db8::]/32:1-2", "10.0.0.0/8:*", "public", "fd00::1:443",
		"https://u:p@h/x", "tcp://https://x", "udp://bücher.example:443", "[::ffff:1.2.3.4/120]:5", "0x7f.1", "a@b:1/2", "@b:1", "[::1%lo]", "*.*", "::/0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			if target != (Target{}) || agent.KindOf(err) != agent.KindInvalid {
				t.Fatalf("%q: %q, %v", text, target, err)
			}
			return
		}
		again, err := ParseTarget(target.String())
		if err != nil || again != target || again.String() != target.String() {
			t.Fatalf("%q became %q, that became %q, %v", text, target, again, err)
		}
		if strings.Trim(target.String(), "abcdefghijklmnopqrstuvwxyz0123456789-_.:/*[]@") != "" {
			t.Fatalf("%q became %q", text, target)
		}
	})
}
