//go:build root

package integration

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// TestStreamsPassThrough: a megabyte of every byte value in and out, and the
// two outputs apart.
func TestStreamsPassThrough(t *testing.T) {
	h := newHost(t)
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

// TestInputEndsWhenTheUserEndsIt, and not before: the agent answers each line.
func TestInputEndsWhenTheUserEndsIt(t *testing.T) {
	h := newHost(t)
	r := h.start(nil, "sh", "-c", `while read line; do echo "got $line"; done; echo end`)
	for _, word := range []string{"one", "two"} {
		io.WriteString(r.stdin, word+"\n")
		if line := r.line(); line != "got "+word {
			t.Fatalf("the agent says %q", line)
		}
	}
	r.wait().want(t, agent.StatusExited, 0, "end\n")
}

// TestAReaderThatLeavesEndsTheAgent as in any pipeline, and the record still
// says how. The control is a reader that stays.
func TestAReaderThatLeavesEndsTheAgent(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "record.json")
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

// TestTheAgentMayCloseItsStreams and live on.
func TestTheAgentMayCloseItsStreams(t *testing.T) {
	h := newHost(t)
	r := h.agentWith("unread", nil, "sh", "-c", "exec <&- >&- 2>&-; sleep 0.2; exit 7")
	r.want(t, agent.StatusExited, 7, "")
	if r.record.WallMS < 200 {
		t.Errorf("it ended after %d ms", r.record.WallMS)
	}
}

// TestAFullPipeStopsOnlyTheAgent: nobody reads, the deadline still holds.
func TestADeadlineHoldsAlthoughNobodyReads(t *testing.T) {
	h := newHost(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	life := newLifeline(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := h.command(ctx, "run", "--rm", "--timeout=500ms", life.flag(), "--", "sh", "-c", holdLifeline+"echo ready >&2; exec yes")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := io.ReadFull(stderr, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	life.gone(10 * time.Second) // while clove's own output is still stuck
	if n, _ := io.Copy(io.Discard, read); n == 0 {
		t.Error("nothing was passed on")
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != agent.ExitTimeout {
		t.Errorf("exit %d", code)
	}
}
