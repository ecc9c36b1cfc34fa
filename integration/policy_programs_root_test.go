//go:build root

package integration

import (
	"strings"
	"testing"
)

const listEntries = `
- {exec: /usr/bin/env, is: allow}
- {exec: /usr/bin/python3, is: deny}
- {read: /usr/bin/python3, is: allow}
- {exec: /tmp/env, is: deny}
- {exec: /dev/shm/env, is: deny}
- {syscall: memfd_create, is: deny}
`

// A list of programs is in a sandbox as it is decided. The control is the same document without
// the list.
func TestPolicyTestOfPrograms(t *testing.T) {
	h := newHost(t)
	const list = "version: 1\nname: own\nextends: standard\nfiles: {root: read-only%}\n"
	decided, live := h.tested(strings.ReplaceAll(list, "%", ", execute: [/usr/bin/env]"), listEntries)
	n := strings.Count(listEntries, "- {")
	allOK(t, "decided", decided, n)
	allOK(t, "live", live, n)
	decided, live = h.tested(strings.ReplaceAll(list, "%", ""), "- {exec: /usr/bin/python3, is: allow}\n- {syscall: memfd_create, is: allow}\n")
	allOK(t, "decided control", decided, 2)
	allOK(t, "live control", live, 2)
}

// TestARunRefusesAListThatItCannotHold: exit status 125, one error with a hint, and no run.
func TestARunRefusesAListThatItCannotHold(t *testing.T) {
	h := newHost(t)
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--allow-exec=/usr/bin/env"}, "needs a read-only root"},
		{[]string{"--read-only", "--seccomp=unconfined", "--allow-exec=/usr/bin/env"}, "needs a filter"},
		{[]string{"--read-only", "--allow-exec=/usr/bin/nosuch"}, "does not exist inside"},
		{[]string{"--read-only", "--allow-exec=/usr/bin/env"}, "is not in the list of programs"},
		{[]string{"--read-only", "--allow-exec=/tmp/x"}, "the agent can write there"},
		{[]string{"--read-only", "--allow-exec=/bin/sh", "-v=/usr/lib:/lib-of-host"}, "which the agent changes at /lib-of-host"},
	} {
		r := h.clove(append(append([]string{"run"}, row.flags...), "--", "/bin/sh", "-c", "true")...)
		if r.code != 125 || !strings.Contains(r.stderr, row.want) || strings.Count(r.stderr, "hint: ") != 1 {
			t.Errorf("%q: %d, %s", row.flags, r.code, r.stderr)
		}
	}
	if r := h.clove("run", "--rm", "--read-only", "--allow-exec=/bin/sh", "--", "/bin/sh", "-c", "true"); r.code != 0 {
		t.Errorf("control: %d, %s", r.code, r.stderr)
	}
	if r := h.clove("ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("runs are left: %s", r.stdout)
	}
}
