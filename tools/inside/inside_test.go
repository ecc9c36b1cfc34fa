package inside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/tools"
)

// soon bounds every wait of a test.
const soon = 20 * time.Second

// program is one that a sandbox runs.
type program func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error)

// box serves a run, and counts what was started.
type box struct {
	runs   *Runs
	run    agent.Run
	dir    string
	starts atomic.Int32
	ends   atomic.Int32
	close  func()
}

func newBox(t *testing.T, p program) *box {
	t.Helper()
	dir := t.TempDir()
	b := &box{runs: NewRuns(dir), run: agent.Run{Spec: agent.Spec{ID: "one"}}, dir: dir + "/one"}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		Serve(ctx, l, func(ctx context.Context, _ agent.Exec, stdin, stdout, stderr *os.File) (int, error) {
			b.starts.Add(1)
			defer b.ends.Add(1)
			stop := context.AfterFunc(ctx, func() { stdin.SetReadDeadline(time.Now()) }) // as a signal ends a program
			defer stop()
			return p(ctx, stdin, stdout, stderr)
		})
	}()
	b.close = func() { cancel(); <-served }
	t.Cleanup(func() { b.runs.Close(); b.close() })
	return b
}

// cat gives its stdin back.
func cat(_ context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	text, err := io.ReadAll(stdin)
	if err != nil {
		return 1, nil
	}
	io.Copy(stdout, bytes.NewReader(text))
	io.WriteString(stderr, "said")
	return len(text) % 100, nil
}

func (b *box) call(ctx context.Context, stdin string) (stdout, stderr string, code int, err error) {
	var out, errs bytes.Buffer
	code, err = b.runs.Inside(ctx, b.run, agent.Exec{Command: []string{"/p"}, KillRest: true}, []byte(stdin), tools.Output{Stdout: &out, Stderr: &errs})
	return out.String(), errs.String(), code, err
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Each call has a program of its own, of which one waits from the second call on.
func TestTheNextProgramWaits(t *testing.T) {
	t.Parallel()
	b := newBox(t, cat)
	for i := range 5 {
		text := strings.Repeat("x", 1<<(4*i)) // more than a pipe holds, too
		stdout, stderr, code, err := b.call(t.Context(), text)
		if stdout != text || stderr != "said" || code != len(text)%100 || err != nil {
			t.Fatalf("%d: %d bytes, %q, %d, %v", i, len(stdout), stderr, code, err)
		}
		until(t, "the next program", func() bool { return b.starts.Load() == int32(i)+2 })
	}
	if b.ends.Load() != 5 {
		t.Errorf("%d ended", b.ends.Load())
	}
	b.runs.Close()
	until(t, "the end of the program that waits", func() bool { return b.ends.Load() == 6 })
	if _, _, _, err := b.call(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if time.Sleep(10 * time.Millisecond); b.starts.Load() != 7 {
		t.Errorf("%d were started behind the end", b.starts.Load())
	}
}

// A program that waits and has ended is no call's.
func TestAProgramThatEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	killed := make(chan struct{})
	var started atomic.Int32
	b := newBox(t, func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
		if started.Add(1) == 2 {
			<-killed
			return 137, nil
		}
		return cat(ctx, stdin, stdout, stderr)
	})
	if _, _, _, err := b.call(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	until(t, "the next program", func() bool { return b.starts.Load() == 2 })
	close(killed)
	until(t, "its end", func() bool { return b.ends.Load() == 2 })
	time.Sleep(20 * time.Millisecond) // for the reply
	if stdout, _, _, err := b.call(t.Context(), "two"); stdout != "two" || err != nil {
		t.Errorf("%q, %v", stdout, err)
	}
}

// The end of a call ends its program, and the call returns behind that.
func TestACallThatIsEnded(t *testing.T) {
	t.Parallel()
	why := errors.New("a reason")
	b := newBox(t, func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) (int, error) {
		io.WriteString(stdout, "part")
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		return 143, nil
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, why)
	defer cancel()
	stdout, _, _, err := b.call(ctx, "x")
	if stdout != "part" || !errors.Is(err, why) || b.ends.Load() != 1 {
		t.Errorf("%q, %v, %d ended", stdout, err, b.ends.Load())
	}
}

func TestWhyNothingRuns(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(context.Context, io.Reader, io.Writer, io.Writer) (int, error) {
		return agent.ExitNotFound, &agent.Error{Kind: agent.KindNotFound, Message: "no such program"}
	})
	_, _, code, err := b.call(t.Context(), "x")
	if e := api.ErrorOf(err); code != agent.ExitNotFound || e.Code != api.CodeNotFound || !strings.Contains(e.Message, "no such program") {
		t.Errorf("%d, %v", code, err)
	}
	b.close()
	if _, _, _, err := b.call(t.Context(), "x"); err == nil {
		t.Error("a call behind the end of the run was made")
	}
	b.run.Spec.ID = "another"
	if _, _, _, err := b.call(t.Context(), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// The run's end ends its calls.
func TestTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	b := newBox(t, func(ctx context.Context, _ io.Reader, _, _ io.Writer) (int, error) {
		close(begun)
		<-ctx.Done()
		return 0, &agent.Error{Kind: agent.KindConflict, Message: "it ended"}
	})
	ended := make(chan error, 1)
	go func() { _, _, _, err := b.call(t.Context(), "x"); ended <- err }()
	<-begun
	b.close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(soon):
		t.Fatal("the call goes on")
	}
}
