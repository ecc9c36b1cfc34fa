package parent

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestAProcessCannotFillRootsMemory: by writing to stderr, whose beginning is still reported.
func TestAProcessCannotFillRootsMemory(t *testing.T) {
	t.Parallel()
	p := &Process{stderr: &head{}, command: exec.Command("/bin/sh", "-c",
		`echo "cannot harden: filter" >&2; head -c 20000000 /dev/zero >&2; exit 7`)}
	p.command.Stderr = p.stderr
	if err := p.command.Run(); err == nil || p.command.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v, want exit status 7: each write succeeds", err)
	}
	if n := p.stderr.kept.Len(); n != headBytes {
		t.Errorf("%d bytes are kept, want %d", n, headBytes)
	}
	if text := p.Failure().Error(); !strings.HasSuffix(text, ": cannot harden: filter") {
		t.Errorf("%q", text)
	}
}

func TestAHeadKeepsTheBeginning(t *testing.T) {
	t.Parallel()
	h := &head{}
	for _, part := range []string{"first", strings.Repeat("x", 2*headBytes), "last"} {
		if n, err := h.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if text := h.kept.Bytes(); len(text) != headBytes || !bytes.HasPrefix(text, []byte("firstx")) || bytes.HasSuffix(text, []byte("last")) {
		t.Errorf("%d bytes, %.10q", len(text), text)
	}
}
