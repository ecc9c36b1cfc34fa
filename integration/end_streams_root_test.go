//go:build root

package integration

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// TestStreamsPassThrough: a megabyte of every byte value in and out, with stdout and stderr
// separate.
func TestStreamsPassThrough(t *testing.T) { streamsPassThrough(t, newHost(t)) }

func streamsPassThrough(t *testing.T, h *host) {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	input := strings.Repeat(string(all[:]), 4096)
	r := h.agentWith(input, nil, "cat")
	if r.stdout != input || r.code != 0 {
		t.Errorf("%d bytes of %d came back, exit %d\n%s", len(r.stdout), len(input), r.code, r.stderr)
	}
	if n := r.record.Usage.OutputBytes; n == nil || *n != int64(len(input)) {
		t.Errorf("counted %s", number(n))
	}
	apart := h.sh("echo out; echo err >&2")
	if apart.stdout != "out\n" || apart.stderr != "err\n" {
		t.Errorf("stdout %q, stderr %q", apart.stdout, apart.stderr)
	}
}

// TestInputEndsWhenTheUserEndsIt: before that, the agent answers each line.
func TestInputEndsWhenTheUserEndsIt(t *testing.T) { inputEndsWhenTheUserEndsIt(t, newHost(t)) }

func inputEndsWhenTheUserEndsIt(t *testing.T, h *host) {
	r := h.start(nil, "sh", "-c", `while read line; do echo "got $line"; done; echo end`)
	for _, word := range []string{"one", "two"} {
		io.WriteString(r.stdin, word+"\n")
		if line := r.line(); line != "got "+word {
			t.Fatalf("the agent says %q", line)
		}
	}
	r.wait().want(t, agent.StatusExited, 0, "end\n")
}

// TestAReaderThatLeavesEndsTheAgent: as in any pipeline, and the record still says how. The
// control is a reader that stays.
func TestAReaderThatLeavesEndsTheAgent(t *testing.T) { aReaderThatLeavesEndsTheAgent(t, newHost(t)) }

func aReaderThatLeavesEndsTheAgent(t *testing.T, h *host) {
	file := h.recordFile()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := h.command(ctx, "run", "--rm", "--result", file, "--", "yes")
	cmd.Stdout, cmd.Stderr = write, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd.Wait()
	record := readRecord(t, file)
	if code := cmd.ProcessState.ExitCode(); code != 141 || record.Status != agent.StatusSignaled || said(record.Signal) != "SIGPIPE" {
		t.Errorf("exit %d, %s by %s\n%s", code, record.Status, said(record.Signal), &stderr)
	}
	h.sh("yes | head -c 100000 | wc -c").want(t, agent.StatusExited, 0, "100000\n")
}

// TestTheAgentMayCloseItsStreams: it continues without them.
func TestTheAgentMayCloseItsStreams(t *testing.T) { theAgentMayCloseItsStreams(t, newHost(t)) }

func theAgentMayCloseItsStreams(t *testing.T, h *host) {
	r := h.agentWith("unread", nil, "sh", "-c", "exec <&- >&- 2>&-; sleep 0.2; exit 7")
	r.want(t, agent.StatusExited, 7, "")
	if r.record.WallMS < 200 {
		t.Errorf("it ended after %d ms", r.record.WallMS)
	}
}

// stuck is a clove whose output is not read yet.
type stuck struct {
	t      *testing.T
	cmd    *exec.Cmd
	output *os.File // what clove passes on
	file   string   // path of the record
}

// newStuck starts an agent that prints on stderr when it is ready, and waits until the last of
// its processes has ended.
func newStuck(h *host, script string, flags ...string) *stuck {
	h.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer write.Close()
	life := newLifeline(h.t)
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	h.t.Cleanup(func() { cancel(); read.Close() })
	s := &stuck{t: h.t, output: read, file: h.recordFile()}
	args := append([]string{"run", "--rm", "--result", s.file, life.flag()}, flags...)
	s.cmd = h.command(ctx, append(args, "--", "sh", "-c", holdLifeline+"echo ready >&2; "+script)...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	s.cmd.Stdout = write
	if err := s.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.ReadFull(stderr, make([]byte, len("ready\n"))); err != nil {
		h.t.Fatal(err)
	}
	life.gone(10 * time.Second)
	return s
}

// ends waits for clove and its record.
func (s *stuck) ends() (int, agent.Record) {
	s.t.Helper()
	s.cmd.Wait() // the status is in the record
	return s.cmd.ProcessState.ExitCode(), readRecord(s.t, s.file)
}

// TestALateReaderGetsEverything: all that the agent wrote before its end. It is more than a
// pipe holds, so clove must still have a part of it.
func TestALateReaderGetsEverything(t *testing.T) { aLateReaderGetsEverything(t, newHost(t)) }

func aLateReaderGetsEverything(t *testing.T, h *host) {
	s := newStuck(h, "head -c 100000 /dev/zero; exit 4")
	if exits(t, s.cmd.Process.Pid, time.Second) {
		t.Error("clove did not wait for the reader")
	}
	if n, err := io.Copy(io.Discard, s.output); n != 100000 {
		t.Errorf("%d bytes were passed on, %v", n, err)
	}
	if code, record := s.ends(); code != 4 || *record.Usage.OutputBytes != int64(100000+len("ready\n")) {
		t.Errorf("exit %d, %s bytes", code, number(record.Usage.OutputBytes))
	}
}

// TestAStuckReaderHoldsNothingUp: the deadline is kept although no process reads, and clove, which
// still has output to pass on, ends on a signal. The control is the test above, in which it
// waits.
func TestAStuckReaderHoldsNothingUp(t *testing.T) { aStuckReaderHoldsNothingUp(t, newHost(t)) }

func aStuckReaderHoldsNothingUp(t *testing.T, h *host) {
	s := newStuck(h, "exec yes", "--timeout=500ms")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.cmd.Wait()
	}()
	// The first signal may come so early that it still goes to the agent.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for over := false; !over; {
		select {
		case <-again.C:
			s.cmd.Process.Signal(unix.SIGTERM)
		case <-ended:
			over = true
		}
	}
	if code, record := s.ends(); code != agent.ExitTimeout || record.Status != agent.StatusTimeout {
		t.Errorf("exit %d, %s", code, record.Status)
	}
}

// TestALateSignalChangesNothing: when the record is written, clove waits for a reader of its
// own messages. TERM ends that wait, and clove returns the agent's status. Without a full pipe
// clove would have ended by itself.
func TestALateSignalChangesNothing(t *testing.T) {
	h := newHost(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	full := int(write.Fd()) // stored once: calling Fd makes the pipe blocking
	if err := unix.SetNonblock(full, true); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = unix.Write(full, make([]byte, 4096))
	}
	if err := unix.SetNonblock(full, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	file := h.recordFile()
	cmd := h.command(ctx, "run", "--rm", "--json", "--result", file, "--", "sh", "-c", "exit 7")
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for written := false; !written && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		_, err := os.Stat(file)
		written = err == nil
	}
	// The first signal may still go to the run; a later one comes after its end.
	again := time.AfterFunc(time.Second, func() { cmd.Process.Signal(unix.SIGTERM) })
	defer again.Stop()
	cmd.Process.Signal(unix.SIGTERM)
	cmd.Wait() // the status is compared below
	if code, record := cmd.ProcessState.ExitCode(), readRecord(t, file); code != 7 || record.ExitCode != 7 {
		t.Errorf("exit %d, record %d", code, record.ExitCode)
	}
}
