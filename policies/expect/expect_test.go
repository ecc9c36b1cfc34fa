package expect

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
)

// decided answers a document's entries under a level, changed by change.
func decided(t *testing.T, level string, change func(*agent.Spec), entries string) []Result {
	t.Helper()
	d, err := Parse([]byte("version: 1\npolicy: " + level + "\nexpect:\n" + entries))
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Current()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := resolve.LoadPolicy(level, h)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&policy.Spec)
	}
	decider, err := NewDecider(policy.Spec)
	if err != nil {
		t.Fatal(err)
	}
	results, err := decider.Decide(d.Expect)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestLevelsAreAsExpected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ level, entries string }{
		{"standard", `
- {read: /usr/bin/env, is: allow}
- {exec: /usr/bin/env, is: allow}
- {write: /usr/bin/env, is: deny}
- {read: /root/.ssh/id_rsa, is: deny}
- {read: /etc/shadow, is: deny}
- {write: /workspace/a, is: allow}
- {write: /dev/shm/a, is: allow}
- {exec: /dev/shm/a, is: deny}
- {connect: api.example.com, is: deny}
- {syscall: mount, is: deny}
- {syscall: socket, args: [2, 1], is: allow}
- {tool: fetch, is: deny, note: there are no grants}
`}, {"readonly", `
- {write: /tmp/a, is: allow}
- {write: /workspace/a, is: deny}
- {write: /dev/shm/a, is: allow}
- {syscall: socket, args: [2, 1], is: deny}
`}, {"minimal", `
- {syscall: fork, is: deny}
- {syscall: socket, args: [1, 1], is: deny}
- {syscall: read, is: allow}
`}, {"unrestricted", `
- {connect: "api.example.com:8443", is: allow}
- {connect: "10.1.2.3:5432", is: deny}
- {connect: "10.1.2.3", is: allow}
- {connect: "udp://9.9.9.9:53", is: deny}
- {connect: "169.254.169.254:80", is: deny}
- {write: /usr/bin/env, is: allow}
- {read: /root/.ssh/id_rsa, is: deny}
- {syscall: mount, is: allow}
`},
	} {
		for _, r := range decided(t, row.level, nil, row.entries) {
			if !r.OK || r.By == "" {
				t.Errorf("%s: %+v", row.level, r)
			}
		}
	}
}

func TestTheFilterIsAskedToo(t *testing.T) {
	t.Parallel()
	open := func(s *agent.Spec) {
		s.Network, s.Egress.Rules = agent.NetworkAllowlist, []agent.EgressRule{{Target: "api.example.com", Source: "policy x"}}
		s.Kernel.Grants = []string{"tool:fetch*", "model:echo"}
	}
	const entries = "- {connect: api.example.com, is: allow}\n- {tool: fetch2, is: allow}\n- {model: echo, is: allow}\n- {model: other, is: deny}\n"
	for level, refused := range map[string]int{"standard": 0, "sandboxed": 1, "minimal": 3} {
		failed := 0
		for _, r := range decided(t, level, open, entries) {
			if !r.OK {
				failed++
				if !strings.Contains(r.By, "no socket: seccomp") {
					t.Errorf("%s: %+v", level, r)
				}
			}
		}
		if failed != refused {
			t.Errorf("%s: %d are refused, want %d", level, failed, refused)
		}
	}
}

// A call needs the grants that its method declares, as in the engine. The control is the same without
// the grant.
func TestCallsAskTheirDeclarations(t *testing.T) {
	t.Parallel()
	const entries = `- {call: 'audit.read {"namespace":"acme"}', is: allow}
- {call: 'audit.read {"namespace":"other"}', is: deny}
- {call: 'grant.check {"what":"tool:fetch"}', is: deny}
- {call: budget.get, is: allow}
`
	for _, grants := range [][]string{{"audit:acme"}, nil} {
		for i, r := range decided(t, "standard", func(s *agent.Spec) { s.Kernel.Grants = grants }, entries) {
			if want := i != 0 || grants != nil; r.OK != want {
				t.Errorf("%v: %+v", grants, r)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"version: 2\npolicy: standard\nexpect: [{read: /, is: allow}]":                          "version 2",
		"version: 1\nexpect: [{read: /, is: allow}]":                                            "no policy",
		"version: 1\npolicy: standard":                                                          "expects 0",
		"version: 1\npolicy: standard\nexpect: [{is: allow}]":                                   "0 actions",
		"version: 1\npolicy: standard\nexpect: [{read: /, write: /, is: allow}]":                "2 actions",
		"version: 1\npolicy: standard\nexpect: [{read: /}]":                                     "neither allow nor deny",
		"version: 1\npolicy: standard\nexpect: [{read: a, is: deny}]":                           "absolute",
		"version: 1\npolicy: standard\nexpect: [{read: /, is: deny}, {exec: /, is: no}]":        "entry 2",
		"version: 1\npolicy: standard\nexpect: [{read: /, args: [1], is: deny}]":                "arguments",
		"version: 1\npolicy: standard\nexpect: [{syscall: a, args: [x], is: deny}]":             "no argument",
		"version: 1\npolicy: standard\nexpect: [{syscall: a, args: [1,2,3,4,5,6,7], is: deny}]": "at most 6",
		"version: 1\npolicy: standard\nexpect: [{reed: /, is: deny}]":                           "reed",
		strings.Repeat("#\n", MostBytes):                                                        "bytes",
	} {
		_, err := Parse([]byte(text))
		if agent.KindOf(err) != agent.KindInvalid || !strings.Contains(err.Error(), want) || agent.FailureOf(err).Hint == "" && want != "arguments" {
			t.Errorf("%.80q: %v (%s)", text, err, agent.FailureOf(err).Hint)
		}
	}
	d, err := NewDecider(agent.Spec{Network: agent.NetworkNone, Seccomp: agent.Seccomp{Profile: "standard"}, Limits: agent.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{{Syscall: "nonsense"}, {Tool: "a*"}, {Connect: "http://a"}, {Connect: "a:0"}, {Model: "a\nb"}, {Call: "no.method"}, {Call: `agent.get {"x":1}`}, {Call: `grant.check {"what":"nothing"}`}} {
		if _, err := d.Decide([]Entry{e}); agent.KindOf(err) != agent.KindInvalid || !strings.Contains(err.Error(), "entry 1") {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func TestArgumentsAreRegisters(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte("version: 1\npolicy: standard\nexpect: [{syscall: kill, args: [-1, 0x9, 18446744073709551615], is: deny}]"))
	if err != nil || d.Expect[0].Arguments() != [6]uint64{1<<64 - 1, 9, 1<<64 - 1} || d.Expect[0].String() != "syscall kill [18446744073709551615,9,18446744073709551615]" {
		t.Errorf("%v, %v", d.Expect, err)
	}
}
