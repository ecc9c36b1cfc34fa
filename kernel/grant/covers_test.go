package grant

import (
	"slices"
	"testing"
)

var coverRows = []struct {
	wide    string
	covered []string
	beyond  []string
}{
	{"tool:fetch", []string{"tool:fetch"}, []string{"tool:Fetch", "tool:fetch2", "tool:fetc", "tool:*", "tool:fetch*", "model:fetch", "secret:fetch"}},
	{"tool:f*", []string{"tool:f", "tool:find", "tool:f*", "tool:fa*b", "tool:f/x", "tool:f*/x"}, []string{"tool:*", "tool:g", "tool:*f", "tool:F", "tool:ef", "tool:fetch"}},
	{"tool:*", []string{"tool:*", "tool:f*", "tool:executor", "tool:git/log"}, []string{"tool:exec", "tool:fetch", "tool:git"}}, // these are named
	{"tool:e*c", []string{"tool:epic"}, []string{"tool:exec"}},
	{"tool:*", []string{"tool:*", "tool:a", "tool:a*b/c*"}, []string{"model:a", "spawn:*"}},
	{"tool:*.read", []string{"tool:a.read", "tool:a*.read", "tool:x.read.read"}, []string{"tool:a.reads", "tool:*", "tool:a.*", "tool:aread", "tool:read"}},
	{"tool:a*b*c", []string{"tool:abc", "tool:a1b2c", "tool:a*b*c", "tool:abbc", "tool:a*bc", "tool:abcbc"}, []string{"tool:ac", "tool:ab", "tool:acb", "tool:a*c", "tool:*b*c"}},
	{"tool:a*a", []string{"tool:aa", "tool:a*a", "tool:aaa", "tool:a*aa"}, []string{"tool:a", "tool:a*", "tool:*a"}},
	{"model:claude-*", []string{"model:claude-3:beta", "model:claude-3*"}, []string{"model:openai/claude-3", "model:claude", "model:*claude-*"}},
	{"send:a/*", []string{"send:a/b", "send:a/b/c", "send:a/*"}, []string{"send:a", "send:ab/c"}},
	{"secret:OPENAI_API_KEY", nil, []string{"secret:openai_api_key", "secret:OPENAI_API_KE*"}},

	{"model:qwen3:*", []string{"model:qwen3:8b", "model:qwen3:*"}, []string{"model:qwen3", "model:qwen3:8b:provider-tools", "model:qwen3:8b:provider-state"}},
	{"model:qwen3*:provider-tools", []string{"model:qwen3:8b", "model:qwen3:8b:provider-tools"}, []string{"model:*:provider-tools", "model:qwen3:8b:provider-state"}},
	{"model:x:provider-state", []string{"model:x", "model:x:provider-state"}, []string{"model:x:provider-tools", "model:y:provider-state"}},

	{"state:/notes:rw", []string{"state:/notes", "state:/notes:rw", "state:/notes/:ro", "state:/notes/a/b:rw"},
		[]string{"state:/notes2", "state:/note", "state:/", "state:/Notes", "state:/notes%2fa", "file:/notes", "state:/notes2/a", "state:/notеs", "state:/notes.", "state:/ notes"}},
	{"state:/notes:ro", []string{"state:/notes/a:ro", "state:/notes/%2e%2e/x"}, []string{"state:/notes:rw", "state:/notes/a:rw"}},
	{"file:/:ro", []string{"file:/", "file:/etc/passwd"}, []string{"file:/:rw", "file:/a:rw", "state:/a"}},
	{"file:noter:/memory", []string{"file:noter:/memory/a:ro"}, []string{"file:/memory", "file:noter:/memories", "file:noter:/", "file:noter:/memory:rw", "file:noters:/memory", "file:Noter:/memory"}},
	{"file:noter:/", []string{"file:noter:/memory"}, []string{"file:/", "file:other:/memory"}},
	{"file:/:ro", nil, []string{"file:noter:/", "file:noter:/memory"}},
	{"file:/a/b:rw", []string{"file:/a/b/…/c:rw"}, []string{"file:/a", "file:/a/bb", "file:/a/B", "file:/b/a/b"}},
	// The same letter in composed and decomposed form is two names to Linux.
	{"file:/\u00e9:rw", []string{"file:/\u00e9/a"}, []string{"file:/e\u0301", "file:/e"}},

	{"audit:acme", []string{"audit:acme", "audit:acme/research"}, []string{"audit:/", "audit:acme2", "audit:acm", "audit:Acme", "audit:research/acme"}},
	{"audit:/", []string{"audit:/", "audit:acme", "audit:a/b/c"}, nil},

	{"taint:agent:a", []string{"taint:agent:a"}, []string{"taint:agent", "taint:agent:b", "taint:agent:A", "taint:web"}},
	{"taint:agent", nil, []string{"taint:agent:a"}},

	{"net:api.example.com:443", []string{"net:API.example.com.:443", "net:tcp://api.example.com:443", "net:ａpi.example.com:443"},
		[]string{"net:api.example.com", "net:api.example.com:80", "net:udp://api.example.com:443", "net:*.api.example.com:443", "net:x.api.example.com:443",
			"net:аpi.example.com:443", "net:api.example.com:*", "net:api.example.com:443-444", "net:93.184.216.34:443", "net:public:443", "net:0.0.0.0/0:443"}},
	{"net:api.example.com", []string{"net:api.example.com:443", "net:api.example.com:80"}, []string{"net:api.example.com:81", "net:api.example.com:80-443"}},
	{"net:*.example.com:*", []string{"net:a.example.com", "net:a.b.example.com:22", "net:*.b.example.com:1-5"},
		[]string{"net:example.com", "net:aexample.com", "net:a.example.com.evil.test", "net:*.example.net", "net:93.184.216.34", "net:udp://a.example.com:53"}},
	{"net:10.0.0.0/8:1000-2000", []string{"net:10.1.2.3:1500", "net:10.0.0.0/16:1000-2000"}, []string{
		"net:10.1.2.3:2001", "net:10.1.2.3:999-1001", "net:10.1.2.3", "net:11.0.0.1:1500", "net:10.0.0.0/7:1500", "net:a.example.com:1500", "net:private:1500"}},
	{"net:10.0.0.0/8", []string{"net:[::ffff:10.1.2.3]:443", "net:::ffff:10.1.2.3", "net:10.128.0.0/9:80"}, []string{"net:[64:ff9b::a01:203]:443", "net:[2002:a01:203::1]:443", "net:9.0.0.0/8"}},
	{"net:10.1.0.0/16:*", []string{"net:10.1.128.0/17"}, []string{"net:10.0.0.0/15", "net:10.2.0.0/16", "net:10.0.0.0/8"}},
	{"net:0.0.0.0/0:*", []string{"net:93.184.216.34", "net:0.0.0.0/1"}, []string{"net:10.1.2.3", "net:169.254.169.254", "net:a.example.com", "net:public", "net:[2606::1]", "net:metadata", "net:host"}},
	{"net:public:*", []string{"net:a.example.com:22", "net:*.example.com", "net:93.184.216.0/24"}, []string{"net:private", "net:10.1.2.3", "net:169.254.169.254", "net:host", "net:udp://public:*"}},
	{"net:private", []string{"net:10.1.2.3", "net:192.168.0.0/16", "net:[fd00::1]:443"}, []string{"net:a.example.com", "net:metadata", "net:[fd00:ec2::254]:80", "net:host", "net:169.254.1.1"}},
	{"net:metadata", []string{"net:169.254.169.254:80"}, []string{"net:169.254.0.0/16", "net:169.254.1.1"}},
	{"net:host", []string{"net:host:80"}, []string{"net:10.1.2.3", "net:private"}},
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, row := range coverRows {
		wide := scope(t, row.wide)
		for _, text := range append(slices.Clone(row.covered), row.beyond...) {
			narrow := scope(t, text)
			if want := slices.Contains(row.covered, text); wide.Covers(narrow) != want {
				t.Errorf("%s covers %s: %t", wide, narrow, !want)
			}
		}
	}
}
