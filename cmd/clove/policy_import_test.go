package main

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

func TestPolicyImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.setenv("HOME=/home/me")
	path := b.file("web.json", `{"network": {"allowedDomains": ["example.com"]}, "filesystem": {"allowWrite": ["~/cache"]}}`, 0o600)
	status, stdout, stderr := b.clove("policy", "import", "web.json")
	d, err := policies.Parse([]byte(stdout))
	if status != 0 || err != nil || d.Name != "web" || !slices.Equal(d.Values[settings.Volume], []string{"/home/me/cache:/home/agent/cache"}) || !strings.Contains(stdout, path) {
		t.Errorf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	b.file("settings.json", `{"permissions": {"ask": ["Edit"], "allow": ["Bash(a, b)"]}}`, 0o600)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"settings.json"}, "2 of the settings cannot be carried: permissions.allow=Bash(a, b) ("},
		{[]string{"--skip", "permissions.ask", "settings.json"}, "1 of the settings"},
		{[]string{"--from", "claude", "settings.json"}, "there is no system"},
		{[]string{"--from", "codex", "settings.json"}, "it cannot be read as TOML"},
		{[]string{"--name", "standard", "settings.json"}, "is no name for a policy"},
		{[]string{"--resolved", "settings.json"}, "does not take it"},
		{[]string{"missing.json"}, "cannot read the settings"},
		{nil, "it does not take the words"},
	} {
		status, stdout, stderr := b.clove(append([]string{"policy", "import"}, row.args...)...)
		if status == 0 || stdout != "" || !strings.Contains(stderr, row.want) || !strings.Contains(stderr, "hint:") {
			t.Errorf("%q: status %d\n%s%s", row.args, status, stdout, stderr)
		}
	}
	status, stdout, stderr = b.clove("policy", "import", "--name", "mine", "--skip", "permissions.ask", "--skip", "permissions.allow=Bash(a, b)", "settings.json")
	if status != 0 || !strings.Contains(stdout, "name: \"mine\"") || !strings.Contains(stdout, "# LEFT OUT by --skip: permissions.allow=Bash(a, b)\n") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}
