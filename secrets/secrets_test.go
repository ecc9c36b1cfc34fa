package secrets

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The path of a request has one form, and what two servers could take for different paths has none.
func TestPath(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		"/": "/", "/repos/acme": "/repos/acme", "/repos/": "/repos/", "/a%20b": "/a b", "/%41": "/A", "/a;v=1": "/a;v=1", "/..a": "/..a",
		"": "", "repos": "", "*": "", "//": "", "/repos//x": "", "/./x": "", "/repos/..": "", "/repos/../x": "", "/..;/x": "", "/%2e%2e/x": "", "/.%2E/x": "",
		"/a%2fb": "", "/a%2Fb": "", "/a%5cb": "", `/a\b`: "", "/a%252fb": "", "/a%00b": "", "/a%0ab": "", "/%ff": "", "/%zz": "", "/a%7f": "",
	} {
		if got, err := Path(escaped); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", escaped, got, err)
		}
	}
}

// Rules match a method and a path, a star a part of one segment, and two any number of segments.
func TestRules(t *testing.T) {
	t.Parallel()
	for rule, requests := range map[string]map[string]bool{
		"GET /repos/**":           {"GET /repos/a": true, "GET /repos/a/b/c": true, "GET /repos": true, "GET /repos/": true, "POST /repos/a": false, "GET /repository": false, "GET /": false},
		"POST /repos/a/*/issues":  {"POST /repos/a/b/issues": true, "POST /repos/a/issues": false, "POST /repos/a/b/c/issues": false, "POST /repos/a/b/issues/1": false},
		"* /v1/x*z":               {"DELETE /v1/xz": true, "GET /v1/x-y-z": true, "GET /v1/xy": false, "GET /v1/x/z": false},
		"GET /**/raw":             {"GET /raw": true, "GET /a/b/raw": true, "GET /a/raw/b": false},
		"GET /":                   {"GET /": true, "GET /a": false},
		"GET /a*b*c":              {"GET /abc": true, "GET /a1b2c": true, "GET /acb": false, "GET /ab": false},
		"GET /files/*.txt":        {"GET /files/a.txt": true, "GET /files/.txt": true, "GET /files/a.txt.sh": false},
		"GET /**/admin/**/delete": {"GET /x/admin/y/z/delete": true, "GET /admin/delete": true, "GET /admin/delete/x": false},
	} {
		r, err := ParseRule(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		for request, allowed := range requests {
			method, path, _ := strings.Cut(request, " ")
			if r.Allows(method, path) != allowed {
				t.Errorf("%s allows %s: %t", rule, request, !allowed)
			}
		}
	}
	for _, text := range []string{"", "GET", "/repos", "get /repos", "GET repos", "GET  /a", "GET /a//b", "GET /a/../b", "GET /a%20b", "G1 /a", "GET /" + strings.Repeat("a", 600)} {
		if _, err := ParseRule(text); err == nil {
			t.Errorf("%q is a rule", text)
		}
	}
}

// A rule with one star or two more allows at least what the same rule allowed with text in their place.
func TestAStarAllowsMore(t *testing.T) {
	t.Parallel()
	segment := rapid.StringMatching(`[a-c]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(segment, 1, 5).Draw(t, "path")
		wide := slices.Clone(path)
		at := rapid.IntRange(0, len(path)-1).Draw(t, "at")
		wide[at] = rapid.SampledFrom([]string{"*", "**", path[at][:1] + "*"}).Draw(t, "star")
		r, err := ParseRule("GET /" + strings.Join(wide, "/"))
		if err != nil || !r.Allows("GET", "/"+strings.Join(path, "/")) {
			t.Fatalf("%q, %q: %v", wide, path, err)
		}
	})
}

// Terms have one form; what means nothing, or would have clove write a broken request, is refused.
func TestTerms(t *testing.T) {
	t.Parallel()
	got, err := Terms{Hosts: []string{"API.Example.com", "b.example.com:8443", "api.example.com:443"}, Header: "x-api-key"}.Normal()
	if err != nil || !slices.Equal(got.Hosts, []string{"api.example.com:443", "b.example.com:8443"}) || got.Header != "X-Api-Key" {
		t.Errorf("%+v, %v", got, err)
	}
	if again, err := got.Normal(); err != nil || !slices.Equal(again.Hosts, got.Hosts) || again.Header != got.Header {
		t.Errorf("%+v, %v", again, err)
	}
	host := []string{"api.example.com"}
	for _, wrong := range []Terms{
		{}, {Hosts: []string{"10.0.0.1"}}, {Hosts: []string{"::1"}}, {Hosts: []string{"[::1]:443"}}, {Hosts: []string{"localhost"}}, {Hosts: []string{"*.example.com"}}, {Hosts: []string{"a.example.com:0"}},
		{Hosts: []string{"a.example.com:x"}}, {Hosts: []string{"https://a.example.com"}}, {Hosts: []string{"a.example.com/x"}}, {Hosts: []string{"-a.example.com"}},
		{Hosts: host, Header: "Host"}, {Hosts: host, Header: "content-length"}, {Hosts: host, Header: "X: y"}, {Hosts: host, Header: "X\r\nY"}, {Hosts: host, In: []string{"path"}},
		{Hosts: host, Prefix: "a b"}, {Hosts: host, Prefix: strings.Repeat("p", 17)}, {Hosts: host, CA: "x"}, {Hosts: host, Allow: []string{"x"}},
	} {
		if terms, err := wrong.Normal(); err == nil {
			t.Errorf("%+v is taken as %+v", wrong, terms)
		}
	}
}

// Values that no header can have, or that could not be told from other text, are refused, without the value in the error.
func TestCheckValue(t *testing.T) {
	t.Parallel()
	for value, sound := range map[string]bool{"12345678": true, "1234567": false, "with space": false, "with\nline": false, "with\x00zero": false, "not-ascii-é": false,
		strings.Repeat("a", ValueMost): true, strings.Repeat("a", ValueMost+1): false} {
		if err := (Terms{Hosts: []string{"a.example.com"}}).CheckValue([]byte(value)); (err == nil) != sound || err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%.20q: %v", value, err)
		}
	}
}

// The terms of an ssh key have a key of each host, and nothing of requests; a secret without a host is one to read.
func TestTermsWithoutRequests(t *testing.T) {
	t.Parallel()
	blob := func(kind string) string {
		return base64.StdEncoding.EncodeToString(append([]byte{0, 0, 0, byte(len(kind))}, kind+"key"...))
	}
	key := "ssh-ed25519 " + blob("ssh-ed25519")
	sound := func() Terms {
		return Terms{Hosts: []string{"Git.example.com", "b.example.com:2222"}, SSH: &SSH{HostKeys: []string{"git.example.com:22 " + key, "b.example.com:2222 " + key}}}
	}
	got, err := sound().Normal()
	if err != nil || !slices.Equal(got.Hosts, []string{"b.example.com:2222", "git.example.com:22"}) || got.SSH.User != "git" || len(got.SSH.Known()) != 2 || got.Header != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if again, err := got.Normal(); err != nil || !slices.Equal(again.SSH.HostKeys, got.SSH.HostKeys) {
		t.Errorf("%+v, %v", again, err)
	}
	for about, change := range map[string]func(*Terms){
		"a host without a key": func(s *Terms) { s.Hosts = append(s.Hosts, "c.example.com") },
		"a key of no host":     func(s *Terms) { s.Hosts = s.Hosts[:1] },
		"no host":              func(s *Terms) { s.Hosts, s.SSH.HostKeys = nil, nil },
		"a rule":               func(s *Terms) { s.Allow = []string{"GET /"} },
		"a header":             func(s *Terms) { s.Header = "X" },
		"plain":                func(s *Terms) { s.Plain = true },
		"a user":               func(s *Terms) { s.SSH.User = "a b" },
		"a certificate": func(s *Terms) {
			s.SSH.HostKeys[0] = "git.example.com:22 ssh-ed25519-cert-v01@openssh.com " + blob("ssh-ed25519-cert-v01@openssh.com")
		},
		"another type": func(s *Terms) { s.SSH.HostKeys[0] = "git.example.com:22 ssh-ed25519 " + blob("ssh-rsa") },
		"no base64":    func(s *Terms) { s.SSH.HostKeys[0] = "git.example.com:22 ssh-ed25519 !" },
		"no port":      func(s *Terms) { s.SSH.HostKeys[0] = "git.example.com " + key },
	} {
		terms := sound()
		change(&terms)
		if got, err := terms.Normal(); err == nil {
			t.Errorf("%s: %+v", about, got)
		}
	}
	plain, err := Terms{Plain: true}.Normal()
	if err != nil || plain.CheckValue([]byte("two\nlines")) != nil || plain.CheckValue([]byte("a zero \x00")) == nil {
		t.Errorf("%+v, %v", plain, err)
	}
}

// Hosts' keys are found in a text of ssh's: by name, by name and port, hashed (as ssh-keygen -H does it), and not if they are revoked.
func TestKnownHosts(t *testing.T) {
	t.Parallel()
	hashed := func(host string) string {
		h := hmac.New(sha1.New, []byte("salt"))
		h.Write([]byte(host))
		return "|1|" + base64.StdEncoding.EncodeToString([]byte("salt")) + "|" + base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	text := "# a comment\n\ngit.example.com,10.0.0.1 ssh-ed25519 AAAA1 x\nGit.example.com ssh-rsa AAAA2\n" + hashed("[other.example.com]:2222") + " ssh-rsa AAAA3\n" +
		"@revoked * ssh-rsa AAAA2\n@cert-authority git.example.com ssh-rsa AAAA4\n*.example.com ssh-rsa AAAA5\ngit.example.com ssh-dss AAAA6\n"
	got, err := KnownHosts(text, []string{"git.example.com:22", "other.example.com:2222"})
	if want := []string{"git.example.com:22 ssh-ed25519 AAAA1", "other.example.com:2222 ssh-rsa AAAA3"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, host := range []string{"git.example.com:2222", "other.example.com:22", "none.example.com:22"} {
		if got, err := KnownHosts(text, []string{host}); err == nil {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// git's ssh gets the keys of hosts in the form of known_hosts, and one agent serves all keys.
func TestSSHSettings(t *testing.T) {
	t.Parallel()
	p := ProgramSettings{Dir: "/run/clove"}
	p.SSH(SSH{HostKeys: []string{"a.example.com:22 t k"}})
	p.SSH(SSH{HostKeys: []string{"b.example.com:2222 t k"}})
	if len(p.Env) != 2 || p.Files["ssh_known_hosts"] != "a.example.com t k\n[b.example.com]:2222 t k\n" {
		t.Errorf("%+v", p)
	}
	for want, use := range map[string][3]string{
		"ssh://git@a.example.com": {"ssh", "a.example.com:22", "git"}, "ssh agent: sign": {"ssh", "", "sign"}, "file /x": {"file", "", "/x"}, "https://a": {"", "a", ""}, "GET https://a/x": {"GET", "a", "/x"},
	} {
		if got := Target(use[0], use[1], use[2]); got != want {
			t.Errorf("%s is not %s", got, want)
		}
	}
}

// A placeholder is found wherever it stands, and two are never the same.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	one, other := NewPlaceholder("ghp_"), NewPlaceholder("ghp_")
	if one == other || !strings.HasPrefix(one, "ghp_") || len(one) > PlaceholderMost {
		t.Errorf("%s, %s", one, other)
	}
	text := "token=" + mark + "0123 " + one + " end"
	if from, to := FindPlaceholder([]byte(text)); from < 0 || text[from:to] != one[len("ghp_"):] {
		t.Errorf("%d, %d", from, to)
	}
	for _, none := range []string{"", mark, mark + strings.Repeat("g", 32), one[:len(one)-1], base64.StdEncoding.EncodeToString([]byte(one))} {
		if HasPlaceholder(none) {
			t.Errorf("%q has one", none)
		}
	}
}

// How a run gets a placeholder is written in one form.
func TestMounts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"TOKEN:env=T_1", "TOKEN:file=/run/x", "a.b-c:git", "T:npm", "T:pip", "T:gh", "T:ssh", "T:plain"} {
		if m, err := ParseMount(text); err != nil || m.String() != text {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "TOKEN", "TOKEN:", "TOKEN:env", "TOKEN:env=", "TOKEN:env=1A", "TOKEN:env=A=B", "TOKEN:file=x", "TOKEN:file=/", "TOKEN:svn", "TOKEN:git=x", "TOKEN:plain=/x", "TOKEN:ssh=git", "T/x:env=A", ".t:env=A", ":env=A"} {
		if m, err := ParseMount(text); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("/repos/a%20b")
	f.Add("/..;/x")
	f.Fuzz(func(t *testing.T, escaped string) {
		path, err := Path(escaped)
		if err == nil && (path == "" || path[0] != '/' || strings.Contains(path, "//") || strings.Contains(path+"/", "/../") || strings.Contains(path+"/", "/./") || strings.ContainsAny(path, "\x00\r\n\\")) {
			t.Errorf("%q: %q", escaped, path)
		}
	})
}

// gh asks api.github.com with GitHub's token: a secret that is not for that host is refused, where a placeholder would leave as it is.
func TestGHNeedsTheHostOfTheAPI(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"api.github.com:443": "GH_TOKEN=x", "github.com:443": "", "git.example.com:443": "GH_ENTERPRISE_TOKEN=x"} {
		var p ProgramSettings
		err := p.Add("gh", Terms{Hosts: []string{host}, Header: DefaultHeader}, "x")
		if (err == nil) != (want != "") || err == nil && p.Env[0] != want {
			t.Errorf("%s: %q, %v", host, p.Env, err)
		}
	}
	var both ProgramSettings
	if err := both.Add("gh", Terms{Hosts: []string{"github.com:443", "api.github.com:443"}, Header: DefaultHeader}, "x"); err != nil {
		t.Error(err)
	}
}

// A host of ssh keeps its port, unless it is that of ssh: one host may have both. The control is one of HTTPS.
func TestShortTargetsDiffer(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"ssh://git@example.com":     ShortTarget(MethodSSH, "example.com:22", "git"),
		"ssh://git@example.com:443": ShortTarget(MethodSSH, "example.com:443", "git"),
		"GET https://example.com/a": ShortTarget("GET", "example.com:443", "/a"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
