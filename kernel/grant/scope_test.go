package grant

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestScopesHaveOneText(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, canonical string }{
		{"tool:fetch", "tool:fetch"},
		{"tool:github/*", "tool:github/*"},
		{"tool:*", "tool:*"},
		{"model:llama3:8b", "model:llama3:8b"},
		{"model:@cf/meta/llama-3.1-8b", "model:@cf/meta/llama-3.1-8b"},
		{"model:qwen3:8b:provider-tools", "model:qwen3:8b:provider-tools"},
		{"model:*:provider-state", "model:*:provider-state"},
		{"model:provider-tools", "model:provider-tools"},
		{"model:x:provider-toolshed", "model:x:provider-toolshed"},
		{"taint:agent:provider-tools", "taint:agent:provider-tools"},
		{"spawn:acme/worker-*", "spawn:acme/worker-*"},
		{"send:critic", "send:critic"},
		{"secret:OPENAI_API_KEY", "secret:OPENAI_API_KEY"},
		{"net:api.example.com:443", "net:api.example.com:443"},
		{"net:API.Example.COM.", "net:api.example.com"},
		{"net:*.example.com:*", "net:*.example.com:*"},
		{"net:bücher.example", "net:xn--bcher-kva.example"},
		{"net:10.0.0.0/8:5432", "net:10.0.0.0/8:5432"},
		{"net:::ffff:10.1.2.3", "net:10.1.2.3"},
		{"net:[::ffff:10.1.2.3]:443", "net:10.1.2.3:443"},
		{"net:udp://[2606:2800:220:1::1]:53", "net:udp://[2606:2800:220:1::1]:53"},
		{"net:public", "net:public"},
		{"net:metadata", "net:metadata"},
		{"net:api.example.com:1-65535", "net:api.example.com:*"},
		{"file:/data", "file:/data:ro"},
		{"file:/data/:rw", "file:/data:rw"},
		{"file:/", "file:/:ro"},
		{"state:/notes:ro", "state:/notes:ro"},
		{"state:/notes/%2e%2e/x:rw", "state:/notes/%2e%2e/x:rw"},
		{"state:/notes/…/x", "state:/notes/…/x:ro"},
		{"state:/my notes/été", "state:/my notes/été:ro"},
		{"audit:/", "audit:/"},
		{"audit:acme/research", "audit:acme/research"},
		{"taint:web", "taint:web"},
		{"taint:agent:critic", "taint:agent:critic"},
	} {
		s, err := Parse(row.text)
		if err != nil || s.String() != row.canonical {
			t.Errorf("%s: %s, %v; want %s", row.text, s, err, row.canonical)
			continue
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("%s is read as %+v, %v", s, again, err)
		}
		if parts, err := NewScope(s.Kind(), s.Pattern(), s.Rights()); err != nil || parts != s || !s.Covers(s) {
			t.Errorf("%s: its parts are %+v, %v", s, parts, err)
		}
	}
}

// refusedScopes are texts by the reason in their refusal.
var refusedScopes = map[string][]string{
	"it has no kind":          {"", "fetch", "tool"},
	"there is no kind":        {":fetch", "Tool:fetch", "tool :fetch", " tool:fetch", "tооl:fetch", "network:x", "*:x"},
	"the pattern is empty":    {"tool:", "net:", "file:", "file::ro", "audit:", "taint:"},
	"which cannot be printed": {"tool:a\nb", "file:/a\x00b", "file:/a\u202eb", "file:/a\u200bb", "file:/a\u00a0b", "net:a.example\r", "file:/a\x7f", "file:/a\u2028b"},
	"is not UTF-8":            {"tool:\xff", "file:/\xc0\xaf"},
	"at most 512":             {"tool:" + strings.Repeat("a", 513), "file:/" + strings.Repeat("é/", 200)},
	"has no rights":           {"tool:fetch:ro", "net:a.example:443:rw", "secret:x:ro", "audit:a:ro", "taint:web:rw", "taint:agent:ro"},
	"the rights are provider-tools or provider-state": {"model:x:rw", "model:x:provider-tools:ro"},
	"does not end in":        {"model:x:ro:provider-tools", "model:x:provider-state:provider-tools"},
	"the name holds":         {"tool:a:provider-tools", "model:x:provider-tool s", "tool:fe tch", "tool:a:b", "tool:fetсh", "tool:a%2eb", "tool:a?", "tool:a[b]", `tool:a\b`, "tool:{a,b}", "model:a,b", "secret:$X", "spawn:ａ"},
	"the name begins with":   {"tool:-x", "tool:.x", "tool:/x", "model::x"},
	"two * in a row":         {"tool:**", "tool:a/**/b"},
	"the name has the part":  {"tool:a//b", "tool:a/../b", "tool:a/.", "tool:a/", "spawn:*/.."},
	"neither : nor *":        {"file:/a:wr", "file:/a:RO", "file:/a:b:ro", "state:/a/*", "file:/a:ro:rw"},
	"does not begin with /":  {"file:data", "file:./data", "file:~/x", "state:notes"},
	"the path has the part":  {"file:/a/../b", "file:/..", "file:/a/./b", "file:/a//b", "file://", "file:///", "file:/a//", "state:/./a"},
	"no name in a namespace": {"audit:/acme", "audit:acme/", "audit:acme//x", "audit:../acme", "audit:acme/..", "audit:acme/*", "audit:аcme", "audit:a b"},
	"is no taint":            {"taint:*", "taint:agent:", "taint:agent:a:b", "taint:agent:*", "taint:-web", "taint:web/x"},
	"cannot use": {"net:http://a.example", "net:*", "net:*.com", "net:api.*.com", "net:*a.example.com", "net:a.example/v1", "net:user@a.example",
		"net:api%2eexample.com", "net:api。example.com", "net:10.1.2.3/8", "net:127.1", "net:0x7f000001", "net:fe80::1%eth0", "net:a.example:0", "net:a.example:443-80",
		"net:a.example:99999", "net:a.example:443,80", "net: a.example", "net:a..example"},
	"cannot allow": {"net:localhost:80", "net:127.0.0.1", "net:[::1]:80", "net:x.localhost", "net:0.0.0.0"},
}

func TestRefusedScopesSayTheRightForm(t *testing.T) {
	t.Parallel()
	for reason, texts := range refusedScopes {
		for _, text := range texts {
			s, err := Parse(text)
			var known *agent.Error
			switch {
			case err == nil || s != Scope{}:
				t.Errorf("%q is %+v", text, s)
			case !errors.As(err, &known) || known.Kind != agent.KindInvalid || known.Hint == "":
				t.Errorf("%q: %#v", text, err)
			case !strings.Contains(err.Error(), reason) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }):
				t.Errorf("%q: %q; want %q", text, err, reason)
			}
		}
	}
	for _, rights := range []Rights{"r", "wo", "RW", "ro "} {
		if s, err := NewScope(File, "/a", rights); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("rights %q: %s, %v", rights, s, err)
		}
	}
}

// Each example in a hint is a scope of its kind, and so has every kind a row.
func TestHintsShowScopes(t *testing.T) {
	t.Parallel()
	for _, g := range grammars {
		if s, err := Parse(g.example); err != nil || s.Kind() != g.kind || s.String() != g.example {
			t.Errorf("%s: %s, %v", g.example, s, err)
		}
	}
	want := []Kind{Tool, Model, Net, File, Spawn, Send, Name, State, Secret, Audit, Taint}
	if !slices.Equal(Kinds(), want) {
		t.Errorf("the kinds are %v", Kinds())
	}
}

func TestConcrete(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"tool:fetch": true, "tool:f*": false, "model:*": false, "file:/": true, "file:/a:rw": true, "audit:/": true, "taint:web": true,
		"net:a-b.example": true, "net:a.example:443": true, "net:*.a.example:443": false, "net:a.example:1-2": false, "net:a.example:*": false,
		"net:10.0.0.1": true, "net:10.0.0.0/8": false, "net:10.0.0.0/32": true, "net:udp://10.0.0.1:53": true, "net:[2606::1]": true, "net:[2606::1]:443": true,
		"net:[2606::]/16": false, "net:[2606::1]:1-2": false, "net:public": false, "net:udp://private:*": false, "net:metadata:80": false, "net:host": false,
	} {
		if s := scope(t, text); s.Concrete() != want {
			t.Errorf("%s is concrete: %t", text, !want)
		}
	}
	if (Scope{}).Concrete() || (Scope{}).Covers(Scope{}) || scope(t, "tool:*").Allows(scope(t, "tool:f*")) {
		t.Error("nothing is something, or a pattern is a request")
	}
}

// scope fails the test for a text that is none.
func scope(t *testing.T, text string) Scope {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
