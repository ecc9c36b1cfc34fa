//go:build root

package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A value of -e reaches the agent and no list, with and without cloved; inspect redacts it,
// and rm removes it from the store's file. The control: before rm the file contains it.
func TestSecretsOfTheEnvironment(t *testing.T) {
	d := newCloved(t)
	for name, h := range map[string]*host{"the store": newHost(t), "cloved": d.host} {
		const secret = "s3cr3t-of-the-agent"
		run := h.clove("run", "--name", "holder", "-e", "API_TOKEN="+secret, "-e", "PLAIN=visible", "--", "sh", "-c", `test "$API_TOKEN" = `+secret[:1]+`"`+secret[1:]+`"`)
		if run.code != 0 {
			t.Fatalf("%s: exit %d\n%s", name, run.code, run.stderr)
		}
		inStore := func() bool {
			text, err := os.ReadFile(filepath.Join(h.state, "clove.db"))
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Contains(text, []byte("API_TOKEN="+secret))
		}
		inspected, listed := h.clove("inspect", "holder").stdout, h.clove("ps", "-a", "--json").stdout
		if strings.Contains(inspected, "API_TOKEN="+secret) || !strings.Contains(inspected, "API_TOKEN=(redacted)") || !strings.Contains(inspected, "PLAIN=visible") {
			t.Errorf("%s: inspect says\n%s", name, inspected)
		}
		if strings.Contains(listed, "API_TOKEN=") || strings.Contains(listed, "PLAIN=") || !strings.Contains(listed, "holder") {
			t.Errorf("%s: ps --json says\n%s", name, listed)
		}
		if !inStore() {
			t.Errorf("%s: the control: the store does not hold it", name)
		}
		if r := h.clove("rm", "holder"); r.code != 0 || inStore() {
			t.Errorf("%s: rm exits with %d, and the file still holds the value: %v", name, r.code, inStore())
		}
	}
}
