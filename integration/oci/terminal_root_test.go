//go:build root

package oci

import (
	"os"
	"strings"
	"testing"

	"github.com/containerd/console"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// TestATerminalInTheForeground: it is the caller's terminal, with its size, and is restored.
func TestATerminalInTheForeground(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	const script = "tty; stty size; read line; echo got $line; exit 6"
	bundle := r.Bundle(script, func(s *specs.Spec) { s.Process.Terminal = true })
	for _, args := range [][]string{{"run", "--bundle", bundle, "one"}, {"exec", "--tty", id, "sh", "-c", script}} {
		own, slave, err := console.NewPty()
		if err != nil {
			t.Fatal(err)
		}
		if err := own.Resize(console.WinSize{Height: 33, Width: 44}); err != nil {
			t.Fatal(err)
		}
		user, err := os.OpenFile(slave, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		before, err := state(user)
		if err != nil {
			t.Fatal(err)
		}
		cmd := r.Command(t.Context(), args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = user, user, user
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		const shown = "/dev/pts/0\r\n33 44\r\n"
		if got := readUntil(own, shown); !strings.HasSuffix(got, shown) {
			t.Errorf("%v: it shows %q", args, got)
		}
		if _, err := own.Write([]byte("this\n")); err != nil { // now its echo is not mixed with other output
			t.Error(err)
		}
		readUntil(own, "got this")
		_ = cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != 6 {
			t.Errorf("%v: status %d", args, status)
		}
		if after, err := state(user); err != nil || after != before {
			t.Errorf("%v: the terminal was %+v and is %+v, %v", args, before, after, err)
		}
		user.Close()
		own.Close()
	}
}

// TestRedirectedOutputHasNoCarriageReturns: as with runc, the caller's terminal adds them, and
// a file is not a terminal.
func TestRedirectedOutputHasNoCarriageReturns(t *testing.T) {
	r := newRuntime(t)
	bundle := r.Bundle("tty; echo second", func(s *specs.Spec) { s.Process.Terminal = true })
	own, slave, err := console.NewPty()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	user, err := os.OpenFile(slave, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	var written strings.Builder
	cmd := r.Command(t.Context(), "run", "--bundle", bundle, "one")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = user, &written, user
	if err := cmd.Run(); err != nil || written.String() != "/dev/pts/0\nsecond\n" {
		t.Errorf("%v, %q", err, written.String())
	}
}

// TestATerminalNeedsTheCallers: without one the run is refused.
func TestATerminalNeedsTheCallers(t *testing.T) {
	r := newRuntime(t)
	bundle := r.Bundle("echo ran", func(s *specs.Spec) { s.Process.Terminal = true })
	setsid := testhost.Tool(t, "setsid") // without it, /dev/tty would be the terminal of the tests' user
	cmd := r.Command(t.Context(), "run", "--bundle", bundle, "one")
	cmd.Args = append([]string{"setsid", "--wait", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = setsid
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "cannot find the terminal") {
		t.Errorf("%v: %s", err, text)
	}
}
