//go:build root

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// TestLife is what an engine does with every container.
func TestLife(t *testing.T) {
	r := newRuntime(t)
	pidFile, done := filepath.Join(r.Directory(), "pid"), directory(t, r)
	bundle := r.Bundle("echo started >/tmp/it; exec sleep 1000", bind(done, "/tmp"), func(s *specs.Spec) {
		s.Annotations = map[string]string{"org.example": "kept"}
	})

	r.Must("create", "--bundle", bundle, "--pid-file", pidFile, "one")
	state := r.State("one")
	if state.Status != specs.StateCreated || state.Bundle != bundle || state.Annotations["org.example"] != "kept" || state.ID != "one" {
		t.Errorf("after create: %+v", state)
	}
	if text, err := os.ReadFile(pidFile); err != nil || string(text) != strconv.Itoa(state.Pid) {
		t.Errorf("the pid file has %q, the state %d, %v", text, state.Pid, err)
	}
	if _, err := os.Stat(filepath.Join(done, "it")); err == nil {
		t.Error("the process ran before start")
	}
	if got := r.Do("create", "--bundle", bundle, "one"); got.Status != 1 {
		t.Errorf("a second one with that id: %+v", got)
	}

	r.Must("start", "one")
	r.Await("what the process does", func() bool { _, err := os.Stat(filepath.Join(done, "it")); return err == nil })
	if state := r.State("one"); state.Status != specs.StateRunning {
		t.Errorf("after start: %+v", state)
	}
	for _, refused := range [][]string{{"start", "one"}, {"delete", "one"}} {
		if got := r.Do(refused...); got.Status != 1 {
			t.Errorf("%v of a running one: %+v", refused, got)
		}
	}
	var listed []specs.State
	if err := json.Unmarshal([]byte(r.Must("list", "--format", "json")), &listed); err != nil || len(listed) != 1 || listed[0].Pid != state.Pid {
		t.Errorf("%+v, %v", listed, err)
	}

	r.Must("kill", "one", "KILL")
	r.Await("the end", func() bool { return r.State("one").Status == specs.StateStopped })
	if state := r.State("one"); state.Pid != 0 {
		t.Errorf("after kill: %+v", state)
	}
	r.Must("delete", "one")
	if got := r.Do("state", "one"); got.Status != 1 {
		t.Errorf("after delete: %+v", got)
	}
}

// TestRunGivesTheStatusOfTheProcess: run also passes its input and output on.
func TestRunGivesTheStatusOfTheProcess(t *testing.T) {
	r := newRuntime(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 0, "exit 255": 255} {
		bundle := r.Bundle(script)
		if got := r.Do("run", "--bundle", bundle, "one"); got.Status != want {
			t.Errorf("%s: %+v", script, got)
		}
	}
	bundle := r.Bundle("cat; echo and this >&2")
	got := r.DoWith(strings.NewReader("this"), "run", "--bundle", bundle, "one")
	if got.Out != "this" || got.Err != "and this" {
		t.Errorf("%+v", got)
	}
}

// TestAnEndedReaderEndsTheWriter: a process whose output no reader takes must not wait for ever.
func TestAnEndedReaderEndsTheWriter(t *testing.T) {
	r := newRuntime(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(time.Minute))
	defer cancel()
	cmd := r.Command(ctx, "run", "--bundle", r.Bundle("exec yes"), "one")
	cmd.Stdout = writer
	if err := cmd.Run(); ctx.Err() != nil {
		t.Errorf("it never ended: %v", err)
		r.Do("delete", "--force", "one")
	}
}

// TestRunEndsWithTheFirstProcess: although another process has its output open and outlives
// it, in the host's pid namespace.
func TestRunEndsWithTheFirstProcess(t *testing.T) {
	r := newRuntime(t)
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(time.Minute))
	defer cancel()
	cmd := r.Command(ctx, "run", "--bundle", r.Bundle("sleep 1000 & exit 7", hostPids), "one")
	cmd.Stdout = new(bytes.Buffer)
	if err := cmd.Run(); ctx.Err() != nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it did not end with its process: %v", err)
		r.Do("delete", "--force", "one")
	}
}

// TestWhatIsNotDoneIsRefused: a setting that is accepted and ignored would be worse.
func TestWhatIsNotDoneIsRefused(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	for _, args := range [][]string{{"checkpoint", id}, {"checkpoint", "--image-path", "/x", id}, {"checkpoint", "--help"}, {"restore", "--bundle", "/x", "two"}} {
		if got := r.Do(args...); got.Status != 1 || !strings.Contains(got.Err, "clove-oci does not "+args[0]+" containers") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if state := r.State(id); state.Status != specs.StateRunning {
		t.Errorf("afterwards: %+v", state)
	}
}
