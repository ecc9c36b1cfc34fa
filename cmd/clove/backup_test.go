package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

func TestBackup(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	if status, stdout, stderr := b.clove("backup", "copy"); status != 0 || stdout != "" || b.backend.backup != filepath.Join(here, "copy") {
		t.Errorf("%d, %q, %q, %q", status, stdout, stderr, b.backend.backup)
	}
	for _, args := range [][]string{{"backup"}, {"backup", "a", "b"}, {"backup", ""}} {
		if status, _, stderr := newBench(t).clove(args...); status != exitFailed || !strings.Contains(stderr, "one file") {
			t.Errorf("%q: %d, %q", args, status, stderr)
		}
	}
}

// A backup includes kernel.db: clove copies it if no cloved runs, else cloved does. If that
// copy fails, there is no copy of clove.db either.
func TestBackupTakesKernelAlong(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	free := newBench(t)
	if status, _, stderr := free.clove("backup", to); status != 0 || !slices.Equal(free.backend.kernel, []string{to + ".kernel"}) {
		t.Errorf("%d, %s, %q", status, stderr, free.backend.kernel)
	}
	held := newBench(t)
	held.backend.held = &agent.Error{Kind: agent.KindBusy, Message: "process 7 has it"}
	f := held.cloved()
	var asked api.BackupParams
	f.answers[methods.Backup.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		return api.Nothing{}, json.Unmarshal(params, &asked)
	}
	if status, _, stderr := held.clove("backup", to); status != 0 || asked.File != to+".kernel" {
		t.Errorf("%d, %s, %+v", status, stderr, asked)
	}
	f.answers[methods.Backup.Name] = func(*rpc.Conn, json.RawMessage) (any, error) {
		return nil, api.Failure(api.CodeConflict, "", "it is there already")
	}
	if err := os.WriteFile(to, nil, 0o600); err != nil { // as the backend does
		t.Fatal(err)
	}
	if status, _, stderr := held.clove("backup", to); status != exitFailed || !strings.Contains(stderr, "there already") {
		t.Errorf("%d, %s", status, stderr)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("half a backup is left: %v", err)
	}
}

func TestCheckLooksAtKernel(t *testing.T) {
	free := newBench(t)
	free.backend.kernelProblems = []string{"pages: odd"}
	if status, stdout, stderr := free.clove("check"); status != exitFailed || !strings.Contains(stdout, "kernel.db  pages: odd") {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
	held := newBench(t)
	held.backend.held = &agent.Error{Kind: agent.KindBusy, Message: "process 7 has it"}
	if status, _, stderr := held.clove("check"); status != exitFailed || !strings.Contains(stderr, "process 7 has it") {
		t.Errorf("without cloved: %d, %s", status, stderr)
	}
	f := held.cloved()
	f.answer(methods.Check.Name, api.CheckResult{Problems: []string{"schema: odd"}})
	if status, stdout, stderr := held.clove("check"); status != exitFailed || !strings.Contains(stdout, "kernel.db  schema: odd") {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
	f.answer(methods.Check.Name, api.CheckResult{Problems: []string{}})
	if status, stdout, stderr := held.clove("check"); status != 0 || stdout != "" {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
}
