package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/resolve"
)

// policyBench has a directory of policies with these documents.
func policyBench(t *testing.T, documents map[string]string) *bench {
	t.Helper()
	b := newBench(t)
	b.host.Policies, b.host.Ceiling = []string{b.host.Dir}, b.host.Dir
	for name, text := range documents {
		if err := os.WriteFile(filepath.Join(b.host.Dir, name+".yaml"), []byte("version: 1\nname: "+name+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestPolicyCommands(t *testing.T) {
	b := policyBench(t, map[string]string{
		"web":  "description: reads\nextends: sandboxed\nwiden: {network: it reads an API, seccomp: it connects}\nseccomp: standard\nnetwork: {mode: allowlist, allow: [a.example.com]}\nlimits: {timeout: 60}\n",
		"bad":  "limts: {}\n",
		"wide": "limits: {memory: 2G}\n",
		"host": "limits: {memory: 1G}\n",
	})
	for _, row := range []struct {
		words          string
		status         int
		stdout, stderr []string
	}{
		{"list", 0, []string{"unrestricted", "minimal", "web", "reads", "bad", "cannot be used", "wide"}, nil},
		{"show web", 0, []string{"# web: ", "# sandboxed: built in", "# standard: built in", "# wider: network.mode: allowlist instead of none, because: it reads an API"}, nil},
		{"show --resolved web", 0, []string{"limits.memory        512M", "limits.timeout       60", "seccomp              standard", "network.allow        a.example.com"}, nil},
		{"explain web", 0, []string{"web extends sandboxed extends standard", "reaches a.example.com", "ends after 1m0s", "wider         seccomp: standard instead of strict (web): it connects"}, nil},
		{"explain readonly", 0, []string{"it writes in /tmp, /dev/shm only"}, nil},
		{"check web standard", 0, []string{"web: sound; it is wider than what it extends in 3 places, each with a reason\nstandard: sound"}, nil},
		{"check web bad wide", exitFailed, []string{"web: sound"}, []string{`line 3, column 1: there is no key "limts"`, "did you mean limits?", "limits.memory: 2GiB instead of 1GiB"}},
		{"check nothing", exitFailed, nil, []string{`there is no policy "nothing"`}},
		{"diff sandboxed web", exitFailed, []string{"web allows, and sandboxed does not:", "  network.mode: allowlist instead of none", "sandboxed allows, and web does not:", "  limits.timeout: no limit instead of 1m0s"}, nil},
		{"diff web web", 0, []string{"they allow the same"}, nil},
		{"schema", 0, []string{`"additionalProperties": false`, `"limits"`}, nil},
		{"show", exitFailed, nil, []string{"it does not take the words"}},
		{"explain --resolved web", exitFailed, nil, []string{"clove policy explain does not take it"}},
		{"init new.txt", exitFailed, nil, []string{"no file name for a policy"}},
		{"init web.yaml", exitFailed, nil, []string{"web.yaml exists"}},
		{"init gone/new.yaml", exitFailed, nil, []string{"cannot write the policy"}},
	} {
		status, stdout, stderr := b.clove(append([]string{"policy"}, strings.Fields(row.words)...)...)
		if status != row.status || (stderr == "") != (row.stderr == nil) {
			t.Errorf("%s: %d, %q, %q", row.words, status, stdout, stderr)
		}
		for _, want := range row.stdout {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s does not say %q:\n%s", row.words, want, stdout)
			}
		}
		for _, want := range row.stderr {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s does not say %q:\n%s", row.words, want, stderr)
			}
		}
	}
}

// The output of init is sound, and that of --json is JSON with the same content.
func TestPolicyInitAndJSON(t *testing.T) {
	b := policyBench(t, nil)
	if status, _, stderr := b.clove("policy", "init", "first.yaml"); status != 0 {
		t.Fatal(stderr)
	}
	if status, stdout, stderr := b.clove("policy", "check", "first.yaml"); status != 0 || stdout != "first.yaml: sound\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	var shown struct {
		Policy agent.Policy
		Chain  []resolve.Link
		Values map[string]string
	}
	_, stdout, _ := b.clove("policy", "show", "--json", "first.yaml")
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || shown.Policy.Name != "first" || len(shown.Chain) != 3 || shown.Values["limits.memory"] != "256M" {
		t.Errorf("%v, %+v", err, shown)
	}
	var found []resolve.FoundPolicy
	_, stdout, _ = b.clove("policy", "list", "--json")
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || len(found) != 6 || found[5].Name != "first" {
		t.Errorf("%v, %+v", err, found)
	}
}

// A run says where its policy is wider, and is refused where the ceiling is narrower.
func TestRunUnderAPolicy(t *testing.T) {
	b := policyBench(t, nil)
	b.backend.record = agent.Record{Status: agent.StatusExited}
	status, _, stderr := b.clove("run", "--policy", "unrestricted", "--", "/bin/true")
	if status != 0 || !strings.Contains(stderr, "policy unrestricted is wider than what it extends in limits.memory") || b.backend.spec.Seccomp.Profile != "unconfined" || len(b.backend.spec.Policy.Widened) == 0 {
		t.Errorf("%d, %q, %+v", status, stderr, b.backend.spec.Policy)
	}
	if status, _, stderr = b.clove("run", "--policy", "minimal", "--", "/bin/true"); status != 0 || stderr != "" || b.backend.spec.Policy.Name != "minimal" || b.backend.spec.Limits.Pids != 32 {
		t.Errorf("%d, %q, %+v", status, stderr, b.backend.spec)
	}
	if err := os.WriteFile(filepath.Join(b.host.Dir, "host.yaml"), []byte("version: 1\nname: host\nlimits: {memory: 300M}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr = b.clove("run", "--policy", "minimal", "--", "/bin/true"); status != 0 {
		t.Errorf("%d, %q", status, stderr)
	}
	if status, _, stderr = b.clove("run", "--", "/bin/true"); status != agent.ExitStartFailed || !strings.Contains(stderr, "limits.memory: 1GiB instead of 300MiB") {
		t.Errorf("%d, %q", status, stderr)
	}
}
