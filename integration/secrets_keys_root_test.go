//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run whose secret it could not use is refused with what is wrong, and nothing of it is there: in the foreground, in the background and
// through a manifest. The control is the same run with a secret that it can use; that of which the secret is gone by its start ends as a
// start that failed.
func TestARunWithAnUnusableSecretIsNotMade(t *testing.T) {
	d, _, _ := secretHost(t)
	d.keeps("GOOD")
	d.keeps("NPM", "--header", "X-Token")
	d.keeps("OLD", "--expires", "1s")
	time.Sleep(time.Second) // the clock of the expiry
	const allowed = "api.example.com"
	for _, row := range []struct{ secret, allow, want string }{
		{"NONE:env=T", allowed, "there is no secret"},
		{"OLD:env=T", allowed, "it expired at"},
		{"GOOD:env=T", "other.example.com", "add --allow api.example.com"},
		{"NPM:npm", allowed, "npm sends its token in the header Authorization"},
	} {
		manifest := filepath.Join(t.TempDir(), "manifest.yaml")
		text := "version: 1\nname: child\nextends: sandboxed\ncommand: [sleep, \"1\"]\nnetwork: {mode: allowlist, allow: [" + row.allow + "]}\nsecrets: [\"" + row.secret + "\"]\n"
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := []string{"run", "--name", "unusable", "--allow", row.allow, "--secret", row.secret}
		for _, args := range [][]string{append(run, "--", "true"), append(run, "-d", "--", "true"), {"manifest", "add", manifest}} {
			r := d.clove(args...)
			if r.code == 0 || !strings.Contains(r.stderr, row.want) {
				t.Errorf("%q: %d %s", args, r.code, r.stderr)
			}
		}
		if ps := d.ok("ps", "-a"); strings.Contains(ps, "unusable") {
			t.Errorf("%s: %s", row.secret, ps)
		}
		if all := d.ok("manifest", "ls"); strings.Contains(all, "child") {
			t.Errorf("%s: %s", row.secret, all)
		}
	}
	for _, how := range [][]string{{}, {"-d"}} {
		d.ok(append(append([]string{"run", "--name", "usable" + strings.Join(how, "")}, how...), "--allow", allowed, "--secret", "GOOD:env=T", "--", "true")...)
	}
	if ps := d.ok("ps", "-a"); strings.Count(ps, "usable") != 2 {
		t.Errorf("control: %s", ps)
	}
	d.ok("run", "--name", "later", "-d", "--delay", "2s", "--allow", allowed, "--secret", "GOOD:env=T", "--", "true")
	d.ok("secret", "rm", "GOOD")
	until(t, "the start fails", func() bool { return strings.Contains(d.ok("ps", "-a"), "start-failed") })
}
