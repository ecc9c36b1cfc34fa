//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
)

// manifestIn writes an agent that prints its arguments, and its manifest with some keys more.
func manifestIn(t *testing.T, more string) (file string) {
	t.Helper()
	dir := userDir(t, map[string]string{
		"agent.py":   "import os, sys\nprint(*sys.argv[1:], os.environ['GREETING'])\n",
		"agent.yaml": "version: 1\nname: greeter\nextends: sandboxed\nscript: agent.py\nargs: [one]\nlimits: {memory: 128M}\nenvironment: {set: {GREETING: hello}}\n" + more,
	})
	return filepath.Join(dir, "agent.yaml")
}

// An agent that is a file runs under the limits in it, and its record has its name and digest,
// which is the same on each machine.
func TestManifestRuns(t *testing.T) {
	h := newHost(t)
	file, record := manifestIn(t, ""), h.recordFile()
	r := h.clove("run", "--result", record, file, "--", "two")
	if r.code != 0 || r.stdout != "one two hello\n" {
		t.Fatalf("%d, %q, %q", r.code, r.stdout, r.stderr)
	}
	const golden = "4c58c55100358326ebc98e720340427d6e90ef4590b430d1c74ab61b677fc907"
	got := readRecord(t, record)
	if got.Manifest.Name != "greeter" || got.Manifest.SHA256 != golden || !strings.HasPrefix(got.Name, "greeter-") {
		t.Errorf("%+v", got)
	}
	// Control: the script by itself has neither arguments nor variables.
	if r := h.clove("run", "--result", record, filepath.Join(filepath.Dir(file), "agent.py")); r.code == 0 || readRecord(t, record).Manifest.Name != "" {
		t.Errorf("without the manifest: %q", r.stdout)
	}
}

// A hostile manifest is refused before anything is made, or takes of the host only what a line on
// stderr names.
func TestHostileManifests(t *testing.T) {
	h := newHost(t)
	for text, want := range map[string]string{
		"a: &a [x]\n":                          "there is no key",
		"labels: &a [x, x]\n":                  "anchors are not read",
		"labels: [*a]\n":                       "unknown anchor",
		"files: {volumes: [\"/proc/1:/x\"]}\n": "files.volumes",
		"workspace: /\n":                       "workspace",
		"files: {mounts: [\"type=bind,source=../../..,target=/etc\"]}\n": "files.mounts",
		"user: root\n---\nversion: 1\n":                                  "second document",
		"ulimits: {nofile: .inf}\n":                                      "ulimits",
		"home: ../other\n":                                               "is not kept",
	} {
		file := manifestIn(t, text)
		if r := h.clove("run", file); r.code != 125 || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: %d, %q, %q", text, r.code, r.stdout, r.stderr)
		}
	}
	// A FIFO in place of the script does not hold clove.
	file := manifestIn(t, "")
	script := filepath.Join(filepath.Dir(file), "agent.py")
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	if r := h.clove("run", file); r.code != 125 || !strings.Contains(r.stderr, "line 4, column 9: script") {
		t.Errorf("%+v", r)
	}
	if r := h.clove("run", manifestIn(t, "files: {volumes: [\"./:/data:ro\"]}\non_warn: touch /tmp/never\n")); r.code != 0 || !strings.Contains(r.stderr, "shows ./:/data:ro; runs as you or posts to touch /tmp/never") {
		t.Errorf("%+v", r)
	}
}

// Each run of a manifest has its grants anew, with the digest as their reason; what was revoked
// in one is there in the next.
func TestManifestGrantsAreAnew(t *testing.T) {
	d := newCloved(t)
	file := manifestIn(t, "grants: [\"state:/notes\"]\ndetach: true\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "agent.py"), []byte("import time\ntime.sleep(1000)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	grants := func(name string) (all []api.Grant) {
		t.Helper()
		d.ok("run", "--name", name, file)
		r := d.ok("grant", "list", "--json", name)
		if err := json.Unmarshal([]byte(r), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := grants("one")
	if len(first) != 1 || first[0].Grant != "state:/notes:ro" || !strings.HasPrefix(first[0].Reason, "manifest greeter sha256:") {
		t.Fatalf("%+v", first)
	}
	d.ok("grant", "revoke", "one", first[0].ID)
	second := grants("two")
	if len(second) != 1 || second[0].ID == first[0].ID || second[0].Reason != first[0].Reason {
		t.Errorf("%+v", second)
	}
	d.ok("stop", "-t", "0", "one", "two")
}

// deriveNotes is an agent's own narrower grant, and what it holds then.
const deriveNotes = `import json, socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/clove/agent.sock"); f = s.makefile("rw")
def call(method, params):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=f, flush=True)
    return json.loads(f.readline())["result"]
top = next(g for g in call("grant.list", {})["grants"] if g["grant"] == "state:/notes:ro")
print(call("grant.derive", {"from": top["id"], "grant": "state:/notes/today:ro"})["grant"]["grant"])`

// A member's agent with restart: always goes on with its conversation when its loop is killed in the
// middle of a command, which is not made again. Each of its lives has the manifest's grants anew: what was
// revoked is there, what was passed on is gone. The control is the life before.
func TestLivesOfAMembersAgent(t *testing.T) {
	d := newClovedFor(t, groupName)
	config, folder := loopModel(t, "/nowhere")
	d.stop(15)
	d.settings = "models: " + config + "\n"
	d.serve()
	m := d.member()
	if err := os.WriteFile(filepath.Join(folder, "agent.yaml"), []byte("version: 1\nname: fixer\nmodel: worker\nhome: kept\nworkspace: .\nnetwork: {mode: none}\ngrants: [\"tool:fetch\", \"state:/notes\"]\ndetach: true\nrestart: always\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := m.in(folder, "", "ask", "--name", "fixer", "agent.yaml", "Sleep"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	grants := func() (all []api.Grant) {
		t.Helper()
		if r := m.clove("grant", "list", "--json", "fixer"); r.code != 0 || json.Unmarshal([]byte(r.stdout), &all) != nil {
			t.Fatalf("%+v", r)
		}
		return slices.DeleteFunc(all, func(g api.Grant) bool {
			return !strings.HasPrefix(g.Grant, "tool:") && !strings.HasPrefix(g.Grant, "state:")
		})
	}
	d.until(members("fixer"), "test -s /workspace/made")
	first := grants()
	if r := m.clove("exec", "fixer", "--", "python3", "-c", deriveNotes); r.stdout != "state:/notes/today:ro\n" {
		t.Fatalf("%+v", r)
	}
	for _, g := range first {
		if g.Grant == "tool:fetch" {
			if r := m.clove("grant", "revoke", "fixer", g.ID); r.code != 0 {
				t.Fatal(r.stderr)
			}
		}
	}
	if control := grants(); len(first) != 2 || len(control) != 2 || slices.ContainsFunc(control, func(g api.Grant) bool { return g.Grant == "tool:fetch" }) {
		t.Errorf("control: %+v, at first %+v", control, first)
	}
	m.clove("exec", "fixer", "--", "sh", "-c", killLoop)
	for deadline := time.Now().Add(patience()); !strings.Contains(m.clove("logs", "fixer").stdout, "I was interrupted"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", m.clove("logs", "fixer"))
		}
	}
	if r := m.clove("logs", "fixer"); strings.Count(r.stdout+r.stderr, "going on after 1 answers") != 1 {
		t.Errorf("%+v", r)
	}
	next := grants()
	for _, g := range next {
		if g.Parent != "" || g.Reason != first[0].Reason || !strings.HasPrefix(g.Reason, "manifest fixer sha256:") || slices.ContainsFunc(first, func(old api.Grant) bool { return old.ID == g.ID }) {
			t.Errorf("%+v", g)
		}
	}
	if len(next) != 2 {
		t.Errorf("%+v", next)
	}
	if r := m.clove("rm", "--force", "fixer"); r.code != 0 {
		t.Error(r.stderr)
	}
	for _, home := range keptHomes(t, m) {
		if r := m.clove("home", "rm", home.ID); r.code != 0 {
			t.Error(r.stderr)
		}
	}
}

// An agent that is a model and instructions runs clove's loop, and goes on with its conversation in
// the home that stays. Without home: kept each run begins anew.
func TestManifestOfAModel(t *testing.T) {
	h := newHost(t)
	for _, home := range []string{"home: kept\n", ""} {
		dir := userDir(t, map[string]string{"helper.yaml": "version: 1\nname: helper\nmodel: echo\ninstructions: be brief\nworkspace: .\n" + home})
		file := filepath.Join(dir, "helper.yaml")
		if r := h.clove("run", file); r.code != 125 || !strings.Contains(r.stderr, "needs one prompt") {
			t.Fatalf("without a prompt: %+v", r)
		}
		for _, prompt := range []string{"first prompt", "second prompt"} {
			if r := h.clove("ask", "--rm", file, prompt); r.code != 0 || !strings.Contains(r.stdout, prompt) {
				t.Fatalf("%s: %+v", prompt, r)
			}
		}
		r := h.clove("run", "--rm", "--home", "helper", "--workspace", dir, "--", "sh", "-c", "cat /home/agent/.clove/*.jsonl")
		if kept := strings.Contains(r.stdout, "first prompt") && strings.Contains(r.stdout, "second prompt"); kept != (home != "") {
			t.Errorf("%q: %+v", home, r)
		}
		// The folder of another agent's manifest has another home.
		if r := h.clove("run", "--rm", "--home", "helper", "--workspace", userDir(t, nil), "--", "ls", "-A", "/home/agent"); strings.Contains(r.stdout, ".clove") {
			t.Errorf("another folder has the home: %+v", r)
		}
	}
}
