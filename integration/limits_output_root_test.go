//go:build root

package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestOutputLimit: output within the limit arrives, the next byte ends the agent, and stdout
// and stderr count together.
func TestOutputLimit(t *testing.T) {
	h := newHost(t)
	const limit = 100_000
	// Control: output of exactly the limit ends nothing.
	control := h.sh("yes | head -c 100000", "--output-limit", "100000")
	if control.want(t, agent.StatusExited, 0, strings.Repeat("y\n", limit/2)); t.Failed() {
		t.FailNow()
	}
	for name, script := range map[string]string{
		"stdout": `yes`,
		"stderr": `yes >&2`,
		"both":   `yes & yes >&2; sleep 1000`,
		"quiet":  `yes | head -c 100001; sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			r := h.sh(script, "--output-limit", "100000")
			said, found := strings.CutPrefix(r.stderr[strings.LastIndex("\n"+r.stderr, "\nclove: "):], "clove: output limit of ")
			if passed := len(r.stdout) + strings.LastIndex("\n"+r.stderr, "\nclove: "); passed != limit {
				t.Errorf("%d bytes were passed on, want %d", passed, limit)
			}
			hit := r.record.Limit
			if r.record.Status != agent.StatusOutputLimit || r.code != agent.ExitKilled || hit == nil || hit.Name != agent.ControlOutput || hit.Value != limit {
				t.Fatalf("%s, exit %d, limit %+v", r.record.Status, r.code, hit)
			}
			if hit.Peak == nil || *hit.Peak <= limit || r.record.Usage.OutputBytes == nil || *r.record.Usage.OutputBytes != *hit.Peak {
				t.Errorf("the peak is %s, the usage %s", show(hit.Peak), show(r.record.Usage.OutputBytes))
			}
			if r.record.Signal == nil || *r.record.Signal != "SIGKILL" {
				t.Errorf("the signal is %v", r.record.Signal)
			}
			if !found || !strings.Contains(said, "--output-limit") {
				t.Errorf("the last line of stderr is %q", r.stderr[max(0, len(r.stderr)-200):])
			}
		})
	}
}

// TestOutputFloodPassesIntact compares 50 MiB of random bytes.
func TestOutputFloodPassesIntact(t *testing.T) {
	h := newHost(t)
	const bytes = 50 << 20
	r := h.agent(nil, python, "-c", `
import hashlib, os, sys
seen = hashlib.sha256()
for _ in range(50):
    block = os.urandom(1 << 20)
    seen.update(block)
    sys.stdout.buffer.write(block)
print(seen.hexdigest(), file=sys.stderr)
`)
	sum := sha256.Sum256([]byte(r.stdout))
	if len(r.stdout) != bytes || strings.TrimSpace(r.stderr) != hex.EncodeToString(sum[:]) || r.code != 0 {
		t.Errorf("%d of %d bytes, hash %x, want %s; exit %d", len(r.stdout), bytes, sum, r.stderr, r.code)
	}
	if counted := r.record.Usage.OutputBytes; counted == nil || *counted != int64(len(r.stdout)+len(r.stderr)) {
		t.Errorf("the record counts %s bytes, %d arrived", show(counted), len(r.stdout)+len(r.stderr))
	}
}
