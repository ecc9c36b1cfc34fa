package main

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/expect"
	"clove.run/clove/policies/probe"
)

const expectations = `version: 1
policy: standard
expect:
- {read: /root/x, is: deny}
- {write: /workspace/a, is: allow}
- {syscall: mount, is: deny, note: none of its own}
- {connect: "10.0.0.1:5432", is: deny}
`

func TestPolicyTest(t *testing.T) {
	b := newBench(t)
	path := b.file("e.yaml", expectations, 0o644)
	status, stdout, stderr := b.clove("policy", "test", path)
	for _, want := range []string{"ok      deny read /root/x: ", "ok      allow write /workspace/a: ", "EPERM", "(none of its own)", "standard: 4 of 4 as expected\n"} {
		if status != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%d, without %q\n%s%s", status, want, stdout, stderr)
		}
	}
	b.file("e.yaml", strings.Replace(expectations, "/root/x, is: deny", "/root/x, is: allow", 1), 0o644)
	status, stdout, _ = b.clove("policy", "test", path)
	if status != exitFailed || !strings.Contains(stdout, "FAILED  read /root/x: expected allow, is deny: ") || !strings.Contains(stdout, "3 of 4") {
		t.Errorf("%d\n%s", status, stdout)
	}
	var results []expect.Result
	status, stdout, _ = b.clove("policy", "test", "--json", path)
	if unmarshal(t, stdout, &results); status != exitFailed || len(results) != 4 || results[0].OK || results[0].Got != expect.Deny || results[0].By == "" || !results[1].OK {
		t.Errorf("%d, %+v", status, results)
	}
	if b.paths != 0 {
		t.Error("the runtime was opened")
	}
}

// A policy's relative path begins where the expectations are.
func TestPolicyTestFindsItsPolicy(t *testing.T) {
	b := newBench(t)
	b.file("sub/own.yaml", "version: 1\nname: own\nextends: readonly\n", 0o644)
	path := b.file("sub/e.yaml", "version: 1\npolicy: ./own.yaml\nexpect: [{write: /workspace/a, is: deny}]\n", 0o644)
	if status, stdout, stderr := b.clove("policy", "test", path); status != 0 || !strings.Contains(stdout, "own: 1 of 1") {
		t.Errorf("%d\n%s%s", status, stdout, stderr)
	}
}

func TestPolicyTestMistakes(t *testing.T) {
	b := newBench(t)
	for text, want := range map[string]string{
		"version: 1\npolicy: nobody\nexpect: [{read: /, is: deny}]":           `no policy "nobody"`,
		"version: 1\npolicy: standard\nexpect: [{syscall: nobody, is: deny}]": "entry 1",
		"version: 3\npolicy: standard\nexpect: [{read: /, is: deny}]":         "version 3",
	} {
		path := b.file("e.yaml", text, 0o644)
		for _, live := range []string{"", "--live"} {
			status, stdout, stderr := b.clove(strings.Fields("policy test " + live + " " + path)...)
			if status != exitFailed || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint:") || b.paths != 0 {
				t.Errorf("%q: %d\n%s%s", text, status, stdout, stderr)
			}
		}
	}
	if status, _, stderr := b.clove("policy", "test", "nothing.yaml"); status != exitFailed || !strings.Contains(stderr, "nothing.yaml") {
		t.Errorf("%d, %s", status, stderr)
	}
	if status, _, stderr := b.clove("policy", "check", "--live", "standard"); status != exitFailed || !strings.Contains(stderr, "--live") {
		t.Errorf("%d, %s", status, stderr)
	}
}

func TestPolicyTestLive(t *testing.T) {
	b := newBench(t)
	path := b.file("e.yaml", expectations, 0o644)
	found := []probe.Found{{Errno: 2, Detail: "stat: no such file"}, {Done: true, Detail: "opened"}, {Done: true, Errno: 1, Detail: "EPERM"}, {Errno: 101, Detail: "connect: network is unreachable"}}
	most := len(found)
	b.backend.during = func() {
		for _, one := range found[:most] {
			if _, err := b.backend.streams.Stdout.WriteString(one.Line()); err != nil {
				t.Error(err)
			}
		}
	}
	b.backend.record = agent.Record{Status: agent.StatusExited}
	status, stdout, stderr := b.clove("policy", "test", "--live", path)
	if status != 0 || !strings.Contains(stdout, "4 of 4") || !strings.Contains(stdout, "network is unreachable") {
		t.Errorf("%d\n%s%s", status, stdout, stderr)
	}
	spec := b.backend.spec
	if tries, ok := probe.ParseOrders(spec.Command[2]); !ok || spec.Command[1] != probe.Argument || len(tries) != 4 || !spec.Remove || spec.Policy.Name != "standard" ||
		len(spec.Files.Binds) != 1 || !spec.Files.Binds[0].ReadOnly || spec.Files.Binds[0].Target != spec.Command[0] {
		t.Errorf("%+v", spec)
	}
	most, b.backend.record = 2, agent.Record{Status: agent.StatusOOM}
	status, stdout, _ = b.clove("policy", "test", "--live", path)
	if status != exitFailed || strings.Count(stdout, "FAILED") != 2 || !strings.Contains(stdout, "is unknown: the probe did not come so far: its run is oom") {
		t.Errorf("%d\n%s", status, stdout)
	}
	most, b.backend.record = 0, agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: "cgroup", Message: "no"}}
	if status, stdout, stderr = b.clove("policy", "test", "--live", path); status != exitFailed || stdout != "" || !strings.Contains(stderr, "cgroup: no") {
		t.Errorf("%d\n%s%s", status, stdout, stderr)
	}
}
