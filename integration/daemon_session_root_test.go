//go:build root

package integration

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// connect returns the Go client of the daemon.
func (d *cloved) connect() (*client.Client, context.Context) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	c, err := client.Dial(ctx, d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close(); cancel() })
	return c, ctx
}

// Two attached callers get the same output, both may type, and the end of either ends nothing
// else.
func TestDaemonAttach(t *testing.T) {
	d := newCloved(t)
	d.detach("echo", `while read x; do echo "got $x"; done`, "-i")
	c, ctx := d.connect()
	outputs := [2]chan string{make(chan string, 64), make(chan string, 64)}
	sessions := [2]*client.Session{}
	ends := [2]chan api.AttachResult{make(chan api.AttachResult, 1), make(chan api.AttachResult, 1)}
	for i := range sessions {
		s, err := client.Open(ctx, c, methods.RunAttach, api.AttachParams{RunParams: api.RunParams{Run: "echo"}})
		if err != nil {
			t.Fatal(err)
		}
		sessions[i] = s
		go func() {
			var result api.AttachResult
			if err := s.Answer(ctx, &result, func(piece api.SessionOutput) error { outputs[i] <- string(piece.Data); return nil }); err != nil {
				t.Error(err)
			}
			ends[i] <- result
		}()
	}
	// The second caller is certainly attached when its output arrives.
	for i, text := range []string{"a", "b"} {
		if _, err := sessions[1].Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		if got := <-outputs[1]; got != "got "+text+"\n" {
			t.Errorf("%d: %q", i, got)
		}
	}
	if err := sessions[1].Detach(); err != nil {
		t.Fatal(err)
	}
	if end := <-ends[1]; !end.Detached {
		t.Errorf("%+v", end)
	}
	if _, err := sessions[0].Write([]byte("c\n")); err != nil {
		t.Fatal(err)
	}
	for got := ""; !strings.HasSuffix(got, "got c\n"); {
		got += <-outputs[0]
	}
	if err := sessions[0].CloseInput(); err != nil { // the shell's read ends, and so does the agent
		t.Fatal(err)
	}
	if end := <-ends[0]; end.Detached || end.ExitCode != 0 {
		t.Errorf("%+v", end)
	}
	if text := d.ok("logs", "echo"); text != "got a\ngot b\ngot c\n" {
		t.Errorf("the log: %q", text)
	}
}

// A caller that does not read loses output and gets the number of lost bytes; the agent and
// its log continue meanwhile.
func TestDaemonAttachSlow(t *testing.T) {
	d := newCloved(t)
	c, ctx := d.connect()
	d.detach("loud", `read x; i=0; while [ $i -lt 20000 ]; do echo "0123456789012345678901234567890123456789012345678901234567890123456789 $i"; i=$((i+1)); done; echo end`, "-i")
	slow, err := client.Open(ctx, c, methods.RunAttach, api.AttachParams{RunParams: api.RunParams{Run: "loud"}})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if result, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "loud"}); err != nil || result.Record.Status != agent.StatusExited {
		t.Errorf("%v, %+v", err, result.Record)
	}
	if text := d.ok("logs", "--tail", "1", "loud"); text != "end\n" {
		t.Errorf("%q", text)
	}
}

// exec runs a process beside the agent, with its own streams and exit status.
func TestDaemonExec(t *testing.T) {
	d := newCloved(t)
	d.detach("host", `sleep 1000`)
	if r := d.cloveWith("hello", "exec", "-i", "-e", "A=b", "host", "--", "sh", "-c", `cat; echo " $A"; id -u; exit 5`); r.code != 5 || r.stdout != "hello b\n1000\n" {
		t.Errorf("%d, %q, %s", r.code, r.stdout, r.stderr)
	}
	// The end of the input arrives before the process has a terminal, and still ends its
	// input.
	if r := d.clove("exec", "-it", "host", "--", "sh", "-c", "cat; echo end"); r.code != 0 || r.stdout != "end\r\n" {
		t.Errorf("%d, %q, %s", r.code, r.stdout, r.stderr)
	}
	if r := d.clove("exec", "host", "/no/such"); r.code != agent.ExitNotFound {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	if text := d.ok("logs", "host"); text != "" {
		t.Errorf("it is in the agent's log: %q", text)
	}
}

func TestDaemonPauseStatsTop(t *testing.T) {
	d := newCloved(t)
	d.detach("busy", `while :; do :; done`)
	d.ok("pause", "busy")
	if listed := d.ok("ps"); !strings.Contains(listed, "paused") {
		t.Errorf("%s", listed)
	}
	c, ctx := d.connect()
	first, err := client.Do(ctx, c, methods.RunStats, api.RunParams{Run: "busy"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Do(ctx, c, methods.RunStats, api.RunParams{Run: "busy"})
	if err != nil || !second.Stats.Paused || first.Stats.Usage.CPUMS == nil || *first.Stats.Usage.CPUMS != *second.Stats.Usage.CPUMS {
		t.Errorf("%v: a paused run computes: %+v, %+v", err, first, second)
	}
	d.ok("resume", "busy")
	deadline := time.Now().Add(patience())
	for third := second; *third.Stats.Usage.CPUMS == *second.Stats.Usage.CPUMS; {
		if third, err = client.Do(ctx, c, methods.RunStats, api.RunParams{Run: "busy"}); err != nil || time.Now().After(deadline) {
			t.Fatalf("it does not go on: %v", err)
		}
	}
	var processes []agent.Process
	if err := json.Unmarshal([]byte(d.ok("top", "--json", "busy")), &processes); err != nil || len(processes) < 2 {
		t.Errorf("%v, %+v", err, processes)
	}
	if table := d.ok("stats", "--once"); !strings.Contains(table, "busy") {
		t.Errorf("%s", table)
	}
}

// Files are copied in and out, belong to the agent inside, and nothing the agent made leads a
// copy out of its target.
func TestDaemonCopy(t *testing.T) {
	d := newCloved(t)
	d.detach("box", `ln -s /etc out; sleep 1000`)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "in/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "in/below/file"), []byte("content"), 0o640); err != nil {
		t.Fatal(err)
	}
	// Rounded to seconds, the time would be in the future for programs that compare it, such
	// as make.
	modified := time.Now().Truncate(time.Second).Add(-time.Second + 999999999*time.Nanosecond)
	if err := os.Chtimes(filepath.Join(dir, "in/below/file"), modified, modified); err != nil {
		t.Fatal(err)
	}
	d.ok("cp", filepath.Join(dir, "in"), "box:/workspace")
	if r := d.clove("exec", "box", "stat", "-c", "%.9Y", "in/below/file"); r.stdout != fmt.Sprintf("%d.999999999\n", modified.Unix()) {
		t.Errorf("it was modified at %d.999999999, and inside at %s%s", modified.Unix(), r.stdout, r.stderr)
	}
	if r := d.clove("exec", "box", "sh", "-c", `stat -c '%u %a' in/below/file; cat in/below/file`); r.stdout != "1000 640\ncontent" {
		t.Errorf("%q, %s", r.stdout, r.stderr)
	}
	// An archive need not contain the folders of its files.
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "new/deep/file", Mode: 0o600, Size: 3}), writeAll(w, "abc"), w.Close()); err != nil {
		t.Fatal(err)
	}
	if r := d.cloveWith(archive.String(), "cp", "-", "box:/workspace"); r.code != 0 {
		t.Errorf("an archive: %d, %s", r.code, r.stderr)
	}
	if r := d.clove("exec", "box", "sh", "-c", `stat -c '%u' new/deep; cat new/deep/file`); r.stdout != "1000\nabc" {
		t.Errorf("%q, %s", r.stdout, r.stderr)
	}
	d.ok("cp", "box:/workspace/in", filepath.Join(dir, "back"))
	if text, err := os.ReadFile(filepath.Join(dir, "back/below/file")); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	if r := d.clove("cp", "box:/no/such", dir); r.code == 0 {
		t.Error("what is not there was copied")
	}
}

func writeAll(to io.Writer, text string) error {
	_, err := io.WriteString(to, text)
	return err
}

// If a caller goes away while the process reads none of its input, the process ends.
func TestDaemonExecLeftWithFullInput(t *testing.T) {
	d := newCloved(t)
	d.detach("box", `sleep 1000`)
	c, ctx := d.connect()
	s, err := client.Open(ctx, c, methods.RunExec, api.ExecParams{RunParams: api.RunParams{Run: "box"}, Stdin: true, Exec: agent.Exec{Command: []string{"sh", "-c", "echo began; exec sleep 1001"}}})
	if err != nil {
		t.Fatal(err)
	}
	full := make(chan error, 1)
	go func() {
		_, err := s.Write(make([]byte, 2<<20)) // more than all buffers on the way
		full <- err
	}()
	began := errors.New("it began")
	if err := s.Answer(ctx, nil, func(api.SessionOutput) error { return began }); !errors.Is(err, began) {
		t.Fatal(err)
	}
	awaitSleep(t, ctx, c, true)
	s.Close()
	<-full
	awaitSleep(t, ctx, c, false)
}

// awaitSleep returns when the exec session's process is, or is not, in the sandbox.
func awaitSleep(t *testing.T, ctx context.Context, c *client.Client, wanted bool) {
	t.Helper()
	var last []agent.Process
	for ; ; time.Sleep(10 * time.Millisecond) {
		answer, err := client.Do(ctx, c, methods.RunProcesses, api.RunParams{Run: "box"})
		if err != nil {
			t.Fatalf("%v; the last look showed %+v", err, last)
		}
		if slices.ContainsFunc(answer.Processes, func(p agent.Process) bool { return slices.Equal(p.Command, []string{"sleep", "1001"}) }) == wanted {
			return
		}
		last = answer.Processes
	}
}

// TestDaemonExecTerminated: a TERM of clove exec reaches the process, whose own end is the
// result, and nothing that it started is left. The control is the same process before.
func TestDaemonExecTerminated(t *testing.T) {
	d := newCloved(t)
	d.detach("box", `sleep 1000`)
	c, ctx := d.connect()
	cmd := d.command(ctx, "exec", "box", "--", "sh", "-c", `trap 'echo cleaned; exit 9' TERM; (setsid sleep 1001 &); echo ready; while :; do sleep 0.02; done`)
	out, _ := cmd.StdoutPipe()
	if err := d.begin(cmd); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	awaitSleep(t, ctx, c, true)
	for range 2 { // as timeout(1) does
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	rest, _ := io.ReadAll(lines)
	cmd.Wait() // the exit status is in ProcessState
	if code := cmd.ProcessState.ExitCode(); code != 9 || string(rest) != "cleaned\n" {
		t.Errorf("%d, %q", code, rest)
	}
	awaitSleep(t, ctx, c, false)
	if r := d.clove("exec", "-d", "box", "--", "sleep", "1001"); r.code != 0 {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	awaitSleep(t, ctx, c, true)
}
