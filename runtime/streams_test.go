package runtime

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOutputIsCountedAndCut(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		limit    int64
		input    string
		want     string
		exceeded bool
	}{
		{"no limit", 0, "hello", "hello", false},
		{"under", 6, "hello", "hello", false},
		{"exactly", 5, "hello", "hello", false},
		{"over", 3, "hello", "hel", true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := newStreams(row.limit)
			var out bytes.Buffer
			s.copyOutput(&out, strings.NewReader(row.input))
			if out.String() != row.want {
				t.Errorf("passed on %q, want %q", &out, row.want)
			}
			if s.written.Load() != int64(len(row.input)) {
				t.Errorf("counted %d of %d", s.written.Load(), len(row.input))
			}
			select {
			case <-s.exceeded:
				if !row.exceeded {
					t.Error("reported as over the limit")
				}
			default:
				if row.exceeded {
					t.Error("not reported as over the limit")
				}
			}
		})
	}
}

func TestBothOutputsShareTheLimit(t *testing.T) {
	t.Parallel()
	s := newStreams(8)
	var out, err bytes.Buffer
	s.copyOutput(&out, strings.NewReader("12345"))
	s.copyOutput(&err, strings.NewReader("abcde"))
	if out.String()+err.String() != "12345abc" {
		t.Errorf("passed on %q and %q", &out, &err)
	}
}

func TestPipesCarryBothWays(t *testing.T) {
	t.Parallel()
	stdin, err := os.CreateTemp(t.TempDir(), "in")
	if err != nil {
		t.Fatal(err)
	}
	stdin.WriteString("question")
	stdin.Seek(0, io.SeekStart)
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := newStreams(0)
	if err := s.connectPipes(IO{Stdin: stdin, Stdout: outWrite, Stderr: outWrite}); err != nil {
		t.Fatal(err)
	}
	// The test, in place of the agent, answers on the agent's ends.
	question, err := io.ReadAll(s.agentSide[0])
	if err != nil || string(question) != "question" {
		t.Fatalf("the agent read %q, %v", question, err)
	}
	s.agentSide[1].WriteString("answer")
	s.drain(nil)
	outWrite.Close()
	if answer, _ := io.ReadAll(outRead); string(answer) != "answer" {
		t.Errorf("got %q", answer)
	}
}

func TestABrokenReaderReachesTheAgent(t *testing.T) {
	t.Parallel()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outWrite.Close()
	outRead.Close()
	agentRead, agentWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer agentWrite.Close()
	s := newStreams(0)
	s.pump(outWrite, agentRead, func() {})
	agentWrite.WriteString("no reader")
	s.outputs.Wait()
	if _, err := agentWrite.WriteString("more"); err == nil {
		t.Error("the agent can still write although there is no reader")
	}
}

// TestAStuckReaderCanBeLeft: by a signal that ends clove; other signals only interrupt the
// wait.
func TestAStuckReaderCanBeLeft(t *testing.T) {
	t.Parallel()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	agentRead, agentWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outWrite.Write(make([]byte, 64<<10)); err != nil { // the capacity of a pipe, pipe(7)
		t.Fatal(err)
	}
	s := newStreams(0)
	s.agentSide = []*os.File{agentWrite}
	s.pump(outWrite, agentRead, func() {})
	agentWrite.WriteString("one too many")
	signals := make(chan os.Signal)
	left := make(chan struct{})
	go func() { s.drain(signals); close(left) }()
	signals <- unix.SIGWINCH
	signals <- unix.SIGTERM // received only because the first did not end it
	<-left
	outRead.Close() // ends the pump too
	s.outputs.Wait()
	outWrite.Close()
}
