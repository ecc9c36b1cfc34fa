//go:build root

package runtime

import (
	"bufio"
	"context"
	"os"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// liveAgent is a run that executes, with what a test needs of it.
type liveAgent struct {
	*Live
	t       *testing.T
	out     *os.File // the test's end of its output
	lines   *bufio.Reader
	drained int
	cancel  context.CancelFunc
	record  chan agent.Record
}

// startLive runs a shell script, and returns once it executes. The end of the test ends the
// agent.
func startLive(t *testing.T, script string, change func(*agent.Spec)) *liveAgent {
	t.Helper()
	return startLiveIn(t, newRuntime(t), script, change)
}

// startLiveIn is startLive in an installation.
func startLiveIn(t *testing.T, r *Runtime, script string, change func(*agent.Spec)) *liveAgent {
	t.Helper()
	spec := sleeper()
	spec.Command = []string{"sh", "-c", script}
	if change != nil {
		change(&spec)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a := &liveAgent{t: t, out: out, lines: bufio.NewReader(out), record: make(chan agent.Record, 1)}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	started := make(chan *Live, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		record, err := r.Run(ctx, spec, IO{Stdout: theirs, Stderr: os.Stderr, Started: func(l *Live) { started <- l }})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		theirs.Close()
		a.record <- record
	}()
	t.Cleanup(func() { a.cancel(); out.Close(); <-ended })
	select {
	case a.Live = <-started:
	case <-ended:
		t.Fatalf("the agent did not start: %+v", (<-a.record).Error)
	}
	return a
}

// line waits for the agent's next line.
func (a *liveAgent) line() string {
	a.t.Helper()
	a.out.SetReadDeadline(time.Now().Add(soon))
	line, err := a.lines.ReadString('\n')
	if err != nil {
		a.t.Fatalf("the agent says nothing: %v", err)
	}
	return line[:len(line)-1]
}

// silent reports whether the agent, whose output was read completely, writes nothing for a
// while.
func (a *liveAgent) silent() bool { return a.saysNothing(quiet) }

// goesOn waits for output of an agent that writes all the time.
func (a *liveAgent) goesOn() bool { return !a.saysNothing(soon) }

func (a *liveAgent) saysNothing(within time.Duration) bool {
	a.t.Helper()
	for a.lines.Buffered() > 0 {
		a.lines.Discard(a.lines.Buffered())
	}
	buffer := make([]byte, 64<<10)
	for {
		a.out.SetReadDeadline(time.Now().Add(within))
		n, err := a.out.Read(buffer)
		if err != nil {
			return os.IsTimeout(err)
		}
		// The pipes held some output when it stopped, but never more than this.
		if a.drained += n; a.drained > 1<<20 {
			a.drained = 0
			return false
		}
	}
}

// quiet is the time without output after which an agent counts as stopped.
const quiet = 300 * time.Millisecond

// ends waits for the run's end and returns the record.
func (a *liveAgent) ends() agent.Record {
	a.t.Helper()
	select {
	case record := <-a.record:
		return record
	case <-time.After(soon):
		a.t.Fatal("the agent does not end")
		return agent.Record{}
	}
}
