package main

import (
	"encoding/json"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// The detach keys also work for a run without a terminal: without Enter, and after ctrl-d.
// Text that is typed before them reaches the agent, and the terminal is restored.
func TestAttachIsLeftWithoutATerminalOfTheAgents(t *testing.T) {
	for name, row := range map[string]struct{ keys, typed, input string }{
		"the usual keys": {"ctrl-p,ctrl-q", "ab\ncd\x10\x11", "ab\ncd"},
		"after ctrl-d":   {"ctrl-p,ctrl-q", "ab\n\x04\x10\x11", "ab\n"},
		"a letter":       {"ctrl-x,d", "dd\n\x18d\n", "dd\n"},
		"ctrl-c itself":  {"ctrl-c", "\x03", ""},
	} {
		b := newBench(t)
		master, slave := pseudoTerminal(t)
		b.in = slave
		before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		f := b.cloved()
		f.answer(methods.RunGet.Name, api.RunResult{Run: agent.Run{Spec: agent.Spec{Name: "web"}}})
		got, detached := "", false
		f.answers[methods.RunAttach.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
			// The terminal is prepared before the session begins, so this input reaches the
			// session.
			if _, err := master.WriteString(row.typed); err != nil {
				return nil, err
			}
			for !detached {
				m, err := c.Receive()
				if err != nil {
					return nil, err
				}
				var p api.SessionInput
				if m.Method == api.NoteInput && json.Unmarshal(m.Params, &p) == nil {
					got += string(p.Data)
				}
				detached = m.Method == api.NoteDetach
			}
			return api.AttachResult{Detached: true}, nil
		}
		status, _, stderr := b.clove("attach", "--detach-keys", row.keys, "web")
		if status != 0 || !detached || got != row.input {
			t.Errorf("%s: status %d, %s, left %v, the agent read %q", name, status, stderr, detached, got)
		}
		if after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil || *after != *before {
			t.Errorf("%s: the terminal is %+v, and was %+v (%v)", name, after, before, err)
		}
	}
}
