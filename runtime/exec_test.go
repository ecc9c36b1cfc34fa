package runtime

import (
	"bytes"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestMerged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ base, more, want []string }{
		{nil, nil, nil},
		{[]string{"A=1", "B=2"}, nil, []string{"A=1", "B=2"}},
		{[]string{"A=1", "B=2", "AB=3"}, []string{"A=", "C=4"}, []string{"B=2", "AB=3", "A=", "C=4"}},
	} {
		base := slices.Clone(row.base)
		if got := merged(row.base, row.more); !slices.Equal(got, row.want) {
			t.Errorf("%v and %v: %v", row.base, row.more, got)
		}
		if !slices.Equal(base, row.base) {
			t.Error("the agent's own were changed")
		}
	}
}

func TestValidateExec(t *testing.T) {
	t.Parallel()
	if err := validateExec(agent.Exec{Command: []string{"ls"}, Dir: "/tmp", Env: []string{"A=", "B=c=d"}}); err != nil {
		t.Error(err)
	}
	for _, e := range []agent.Exec{{}, {Command: []string{""}}, {Command: []string{"ls"}, Dir: "tmp"},
		{Command: []string{"ls"}, Env: []string{"A"}}, {Command: []string{"ls"}, Env: []string{"=A"}}} {
		if agent.KindOf(validateExec(e)) != agent.KindInvalid {
			t.Errorf("%+v was taken", e)
		}
	}
}

func TestInputEndsWithItsReader(t *testing.T) {
	t.Parallel()
	input, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	defer input.Close()
	stopped, stop, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	out, typed := io.Pipe()
	ended := make(chan struct{})
	go func() { copyInput(typed, input, stopped, nil); close(ended) }()
	io.WriteString(keys, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	stop.Close()
	select {
	case <-ended:
	case <-time.After(soon):
		t.Fatal("it still reads")
	}
	// The next line must go to the next reader.
	io.WriteString(keys, "next")
	if n, err := input.Read(got[:4]); n != 4 || string(got[:4]) != "next" {
		t.Errorf("%q, %v", got[:n], err)
	}
}

func TestInputThatEnds(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "input")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	io.WriteString(file, "all of it")
	file.Seek(0, io.SeekStart)
	var out bytes.Buffer
	copyInput(&out, file, nil, nil)
	copyInput(&out, nil, nil, nil)
	if out.String() != "all of it" {
		t.Errorf("%q", &out)
	}
}
