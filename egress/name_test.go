package egress

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestNamesBecomeCanonical(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for text, want := range map[string]Name{
		"api.example.com":                       "api.example.com",
		"API.Example.COM":                       "api.example.com",
		"api.example.com.":                      "api.example.com",
		"db":                                    "db",
		"_ldap._tcp.example.com":                "_ldap._tcp.example.com",
		"my_host.example.com":                   "my_host.example.com",
		"r3---sn-4g5e.example.com":              "r3---sn-4g5e.example.com",
		"bücher.example":                        "xn--bcher-kva.example",
		"BÜCHER.example":                        "xn--bcher-kva.example",
		"xn--bcher-kva.example":                 "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":                 "xn--bcher-kva.example",
		"faß.example":                           "xn--fa-hia.example", // not "fass": IDNA 2008
		"ｅｘａｍｐｌｅ.com":                           "example.com",
		"例え.テスト":                                "xn--r8jz45g.xn--zckzah",
		"1.2.3.4.in-addr.arpa":                  "1.2.3.4.in-addr.arpa",
		"1.example.com":                         "1.example.com",
		"127.0.0.1.nip.io":                      "127.0.0.1.nip.io",
		"0xdead.beef.example":                   "0xdead.beef.example",
		"1a":                                    "1a",
		long + ".com":                           Name(long + ".com"),
		strings.Repeat(long+".", 3) + long[:61]: Name(strings.Repeat(long+".", 3) + long[:61]),
	} {
		if got, err := ParseName(text); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// refusedNames are tricks by which a filter of host names and the program behind it see
// different hosts.
var refusedNames = map[string]string{
	"":                                   "empty",
	".":                                  "empty",
	"..":                                 "empty label",
	"api.example.com..":                  "empty label",
	".example.com":                       "empty label",
	"api..example.com":                   "empty label",
	"api.example.com\x00":                "control character",
	"api.example.com\x00.evil.test":      "control character",
	"api.example.com\n":                  "control character",
	"api.example.com\t":                  "control character",
	"api.example.com\x7f":                "control character",
	"api.example.com%00.evil.test":       "holds %",
	"api%2eexample.com":                  "holds %",
	"fe80::1%eth0":                       "':'",
	"user@api.example.com":               "holds @",
	"api.example.com@evil.test":          "holds @",
	"api.example.com/":                   "'/'",
	`api.example.com\.evil.test`:         `'\\'`,
	`api.example.com\evil`:               `'\\'`,
	"api.example.com:443":                "':'",
	"api.example.com#evil.test":          "'#'",
	"api.example.com?evil.test":          "'?'",
	" api.example.com":                   "' '",
	"api.example.com ":                   "' '",
	"[::1]":                              "'['",
	"*.example.com":                      "'*'",
	"api\u3002example\u3002com":          "a dot that is not a dot",
	"api\uff0eexample.com":               "a dot that is not a dot",
	"api\uff61example.com":               "a dot that is not a dot",
	"api.example.com\u3002":              "a dot that is not a dot",
	"api\u2024example.com":               "empty label|IDNA|holds", // ONE DOT LEADER, maps to a dot
	"a\u2100.example.com":                "IDNA|holds",             // ACCOUNT OF, maps to a/c
	"api\uff05zz.example.com":            "IDNA|holds",             // FULLWIDTH PERCENT
	"user\uff20api.example.com":          "IDNA|holds",             // FULLWIDTH @
	"api.example.com\uff0fx":             "IDNA|holds",             // FULLWIDTH SOLIDUS
	"api.example.com\uff1a443":           "IDNA|holds",             // FULLWIDTH COLON
	"api.example.com\u202e":              "IDNA",
	"\u05d0a.example.com":                "IDNA", // right to left, then left to right
	"a\u200db.example.com":               "IDNA",
	"\xff.example.com":                   "not UTF-8",
	"xn--.example.com":                   "empty label",
	"xn--a.example.com":                  "IDNA",
	"xn--example-.com":                   "IDNA|hyphen", // decodes to ASCII
	"xn--BCHER-KVA\u00fc.example":        "IDNA",
	"xn--fass-.example":                  "IDNA|hyphen",
	"-api.example.com":                   "hyphen",
	"api-.example.com":                   "hyphen",
	"api!.example.com":                   "'!'",
	"api,example.com":                    "','",
	"$(id).example.com":                  "'$'",
	strings.Repeat("a", 64) + ".com":     "64 bytes",
	strings.Repeat("a.", 126) + "ab":     "254 bytes",
	strings.Repeat("a", 2000):            "2000 bytes",
	strings.Repeat("ü", 60) + ".example": "bytes",

	// written like addresses
	"1.2.3.4":            "is an address",
	"1.2.3.4.":           "is an address",
	"2130706433":         "a number",
	"0x7f000001":         "a number",
	"0X7F000001":         "a number",
	"0x7f.1":             "a number",
	"0177.0.0.1":         "a number",
	"017700000001":       "a number",
	"127.1":              "a number",
	"127.0.1":            "a number",
	"0":                  "a number",
	"0x":                 "a number",
	"00":                 "a number",
	"1.2.3.4.5":          "a number",
	"256.256.256.256":    "a number",
	"1.2.3.08":           "a number",
	"example.0xa9fea9fe": "a number",
	"example.com.7":      "a number",
	"１２７.０.０.１":          "is an address", // FULLWIDTH digits
	"⑯⑨.254.169.254":     "is an address|a number",
	"127。0。0。1":          "a dot that is not a dot",
	"::1":                "':'",
	"::ffff:169.254.1.1": "':'",
}

func TestTricksAreNoNames(t *testing.T) {
	t.Parallel()
	for text, want := range refusedNames {
		got, err := ParseName(text)
		if err == nil {
			t.Errorf("%q became %q", text, got)
			continue
		}
		if agent.KindOf(err) != agent.KindInvalid || !containsAny(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if strings.ContainsAny(err.Error(), "\x00\n\t\x7f") {
			t.Errorf("%q: the refusal holds raw bytes", text)
		}
	}
}

func containsAny(text, choices string) bool {
	for choice := range strings.SplitSeq(choices, "|") {
		if strings.Contains(text, choice) {
			return true
		}
	}
	return false
}

func TestLocalhostAndWhatLiesBelow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"localhost": true, "LOCALHOST.": true, "a.localhost": true, "mylocalhost": false, "localhost.example.com": false} {
		name, err := ParseName(text)
		if err != nil || name.IsLocalhost() != want {
			t.Errorf("%q: %v, %v", text, name.IsLocalhost(), err)
		}
	}
}

func TestReverseNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[Name]string{
		"34.216.184.93.in-addr.arpa":   "93.184.216.34",
		"1.0.0.127.in-addr.arpa":       "127.0.0.1",
		"184.93.in-addr.arpa":          "invalid IP",
		"034.216.184.93.in-addr.arpa":  "invalid IP",
		"256.216.184.93.in-addr.arpa":  "invalid IP",
		"x.34.216.184.93.in-addr.arpa": "invalid IP",
		"in-addr.arpa":                 "invalid IP",
		"8.b.d.0.1.0.0.2.ip6.arpa":     "invalid IP",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa":  "2001:db8::1",
		"01.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa": "invalid IP",
	} {
		if addr, reverse := name.Reverse(); !reverse || addr.String() != want {
			t.Errorf("%s: %s, %v; want %s", name, addr, reverse, want)
		}
	}
	if _, reverse := Name("in-addr.arpa.example.com").Reverse(); reverse {
		t.Error("a name outside of the reverse tree is in it")
	}
}

// FuzzParseName: every accepted name is canonical, has harmless characters only, and is an
// address to no parser.
func FuzzParseName(f *testing.F) {
	for text := range refusedNames {
		f.Add(text)
	}
	f.Add("BÜCHER.example.")
	f.Add("_sip._tcp.Example.COM")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := ParseName(text)
		if err != nil {
			if name != "" || agent.KindOf(err) != agent.KindInvalid {
				t.Fatalf("%q: %q, %v", text, name, err)
			}
			return
		}
		again, err := ParseName(string(name))
		if err != nil || again != name {
			t.Fatalf("%q became %q, that became %q, %v", text, name, again, err)
		}
		if upper, err := ParseName(strings.ToUpper(string(name)) + "."); err != nil || upper != name {
			t.Fatalf("%q: its other spelling became %q, %v", name, upper, err)
		}
		if len(name) > 253 || strings.Trim(string(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.Contains("."+string(name)+".", "..") {
			t.Fatalf("%q became %q", text, name)
		}
		last := string(name[strings.LastIndexByte(string(name), '.')+1:])
		if strings.Trim(last, "0123456789") == "" {
			t.Fatalf("%q became %q, which is spelled like an address", text, name)
		}
	})
}
