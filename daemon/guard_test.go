package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

// fakeGuards give the answers that a test sets.
type fakeGuards struct {
	mu     sync.Mutex // guards asked
	answer supervisor.Answer
	err    error
	asked  []agent.Guard
}

func (f *fakeGuards) guard(order agent.Guard) (supervisor.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, order)
	return f.answer, f.err
}

func TestAGuardsAnswerIsTheCallers(t *testing.T) {
	r := newRig(t, nil)
	good := api.GuardParams{Guard: agent.Guard{Directory: "/run/clove-oci/one", PID: 7, Network: agent.NetworkNone}}
	for name, row := range map[string]struct {
		params api.GuardParams
		guards *fakeGuards
		want   string
	}{
		"holds":        {good, &fakeGuards{answer: supervisor.Answer{Started: true}}, ""},
		"refuses":      {good, &fakeGuards{answer: supervisor.Answer{Error: api.Failure(api.CodeUnenforceable, "", "no tproxy")}}, "no tproxy"},
		"dies":         {good, &fakeGuards{err: errors.New("it ended without sending an answer")}, "without sending an answer"},
		"no process":   {api.GuardParams{Guard: agent.Guard{Directory: "/run/x"}}, &fakeGuards{}, "needs a container's process"},
		"no directory": {api.GuardParams{Guard: agent.Guard{PID: 7, Directory: "x"}}, &fakeGuards{}, "needs a container's process"},
	} {
		r.d.guards = row.guards
		_, err := r.d.containers().startGuard(&request{Context: within(t)}, row.params)
		if row.want == "" && (err != nil || len(row.guards.asked) != 1 || row.guards.asked[0].PID != 7) {
			t.Errorf("%s: %v, asked %+v", name, err, row.guards.asked)
		}
		if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAGuardIsAProcess: it gets its order, and an end without an answer is an error.
func TestAGuardIsAProcess(t *testing.T) {
	for name, row := range map[string]struct{ script, want string }{
		"answers": {`test "$1" = guard && grep '"pid":7' <&3 && echo '{"started":true}' >&4`, ""},
		"refuses": {`cat <&3; echo '{"error":{"code":-32003,"message":"no tproxy"}}' >&4`, "no tproxy"},
		"dies":    {`cat <&3; echo because >&2; exit 1`, "without sending an answer"},
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "clove")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+row.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := processes{program: program, cgroup: func() (*os.File, error) { return nil, nil }}
		answer, err := p.guard(agent.Guard{Directory: dir, PID: 7})
		if err == nil && answer.Error != nil {
			err = answer.Error
		}
		if row.want == "" && (err != nil || !answer.Started) || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, agent.GuardLogFile)); err != nil || name == "dies" && string(text) != "because\n" {
			t.Errorf("%s: its log has %q, %v", name, text, err)
		}
	}
	if _, err := (processes{}).guard(agent.Guard{Directory: filepath.Join(t.TempDir(), "absent")}); err == nil {
		t.Error("it began without a container")
	}
}
