//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The /env of a set-up is a folder of the host's. A file above the limit of the disk is
// not written, and too many files are refused and removed. The control is within the limit.
func TestBenchBoundsWhatASetupLeaves(t *testing.T) {
	for name, row := range map[string]struct{ script, want string }{
		"within": {"head -c 20M /dev/zero > /env/a", ""},
		"file":   {"head -c 40M /dev/zero > /env/a", "set-up command 1 ended with"},
		"files":  {"head -c 20M /dev/zero > /env/a; head -c 20M /dev/zero > /env/b", "bytes at /env, and may leave 33554432"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSuite(t, map[string]string{"suite.yaml": `
environments:
  - {name: e, setup: {network: {mode: none}, commands: [[sh, -c, "` + row.script + `"]]}}
tasks:
  - {name: t, instruction: x, environment: e, grade: {command: [test, -s, /env/a]}}
agents:
  - {name: a, command: ["true"]}
`})
			r := b.bench()
			if (r.code == 0) != (row.want == "") || !strings.Contains(r.stderr, row.want) {
				t.Errorf("%d\n%s", r.code, r.stderr)
			}
			left, err := filepath.Glob(filepath.Join(b.results, "environments", "*", "env", "*"))
			if err != nil || (len(left) > 0) != (row.want == "") {
				t.Errorf("at /env are %q, %v", left, err)
			}
			for _, path := range left {
				if info, err := os.Stat(path); err != nil || info.Size() > 32<<20 {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}
