package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// someGrants are a run's: the second was derived from the first.
func someGrants() []api.Grant {
	three, when := int64(3), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []api.Grant{
		{ID: "00000000000000a1", Grant: "state:/notes:rw", Holder: "1111111111111111", Giver: "uid:0", Created: when},
		{ID: "00000000000000a2", Grant: "state:/notes:ro", Holder: "1111111111111111", Giver: "1111111111111111", Parent: "00000000000000a1", Created: when, Expires: when.Add(time.Hour)},
		{ID: "00000000000000a3", Grant: "tool:fetch", Holder: "1111111111111111", Giver: "uid:1000", Created: when, UsesLeft: &three, Reason: "\x1b[2Jodd\nline"},
	}
}

func TestGrantList(t *testing.T) {
	b := newBench(t)
	b.cloved().answer(agents.GrantList.Name, api.GrantListResult{Grants: someGrants()})
	status, stdout, stderr := b.clove("grant", "list", "one")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != 0 || stderr != "" || len(lines) != 4 || !strings.Contains(lines[2], "state:/notes:ro  expired") || !strings.Contains(lines[3], `\x1b[2J`) || strings.Contains(stdout, "\x1b") {
		t.Errorf("%d, %q, %s", status, stderr, stdout)
	}
	var grants []api.Grant
	_, stdout, _ = b.clove("grant", "list", "--json", "one")
	if unmarshal(t, stdout, &grants); len(grants) != 3 || *grants[2].UsesLeft != 3 {
		t.Errorf("%s", stdout)
	}
	b.daemon.answer(agents.GrantList.Name, api.GrantListResult{})
	if _, stdout, _ = b.clove("grant", "list", "--json", "one"); stdout != "[]\n" {
		t.Errorf("%q", stdout)
	}
}

func TestGrantGive(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.GrantGive.Name, api.GrantResult{Grant: someGrants()[2]})
	status, stdout, stderr := b.clove("grant", "give", "--uses", "3", "--expires", "10m", "--reason", "a review", "one", "tool:fetch")
	var asked api.GrantGiveParams
	f.heard(methods.GrantGive.Name, &asked)
	left := time.Until(asked.Expires)
	if status != 0 || stdout != "00000000000000a3\n" || asked.Run != "one" || asked.Grant != "tool:fetch" || *asked.Uses != 3 || asked.Reason != "a review" || left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, asked)
	}
	b.clove("grant", "give", "one", "tool:fetch", "--expires", "2030-01-02T03:04:05Z")
	asked = api.GrantGiveParams{}
	if f.heard(methods.GrantGive.Name, &asked); asked.Expires.Year() != 2030 || asked.Uses != nil {
		t.Errorf("%+v", asked)
	}
}

// Of grants with a text, those that went with one before are not asked for again.
func TestGrantRevoke(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	grants := someGrants()
	grants[1].Grant = grants[0].Grant
	f.answer(agents.GrantList.Name, api.GrantListResult{Grants: grants})
	var asked []string
	f.answers[agents.GrantRevoke.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		var p api.GrantRevokeParams
		unmarshal(t, string(params), &p)
		asked = append(asked, p.ID)
		if p.ID == grants[0].ID {
			return api.GrantRevokeResult{Revoked: []string{grants[0].ID, grants[1].ID}}, nil
		}
		return api.GrantRevokeResult{Revoked: []string{p.ID}}, nil
	}
	status, stdout, stderr := b.clove("grant", "revoke", "one", "state:/notes:rw", grants[2].ID)
	if status != 0 || stdout != grants[0].ID+"\n"+grants[1].ID+"\n"+grants[2].ID+"\n" || !slices.Equal(asked, []string{grants[0].ID, grants[2].ID}) {
		t.Errorf("%d, %q, %q, %q", status, stdout, stderr, asked)
	}
	if status, _, stderr := b.clove("grant", "revoke", "one", "tool:other"); status != exitFailed || !strings.Contains(stderr, `no grant "tool:other"`) {
		t.Errorf("%d, %q", status, stderr)
	}
}

func TestGrantCheck(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(agents.GrantCheck.Name, api.GrantCheckResult{Allowed: true, Reason: "grant x allows it"})
	if status, stdout, _ := b.clove("grant", "check", "one", "tool:fetch"); status != 0 || stdout != "allowed: grant x allows it\n" {
		t.Errorf("%d, %q", status, stdout)
	}
	f.answer(agents.GrantCheck.Name, api.GrantCheckResult{Reason: "there is no grant of kind tool"})
	if status, stdout, stderr := b.clove("grant", "check", "one", "tool:fetch"); status != exitFailed || stdout != "denied: there is no grant of kind tool\n" || stderr != "" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	var answer api.GrantCheckResult
	status, stdout, _ := b.clove("grant", "check", "--json", "one", "tool:fetch")
	if unmarshal(t, stdout, &answer); status != exitFailed || answer.Allowed || answer.Reason == "" {
		t.Errorf("%d, %q", status, stdout)
	}
}

// A statement is verified with the public key alone, on another machine; a changed one is
// refused. openssl reads the key.
func TestGrantExportAndVerify(t *testing.T) {
	if os.Geteuid() != 0 {
		if status, _, stderr := newBench(t).clove("grant", "export", "one", "a"); status != exitFailed || !strings.Contains(stderr, "only root") {
			t.Errorf("%d, %q", status, stderr)
		}
		return
	}
	b := newBench(t)
	b.cloved().answer(agents.GrantList.Name, api.GrantListResult{Grants: someGrants()})
	state := t.TempDir()
	grants := someGrants()
	grants[2].Reason = "a review"
	b.daemon.answer(agents.GrantList.Name, api.GrantListResult{Grants: grants})
	status, statement, stderr := b.clove("grant", "export", "--root", state, "one", "00000000000000a3")
	if status != 0 || stderr != "" || strings.Count(statement, "\n") != 2 {
		t.Fatalf("%d, %q, %q", status, statement, stderr)
	}
	dir := filepath.Join(state, "keys", "grant")
	for path, mode := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, grantPrivate): 0o600, filepath.Join(dir, grantPublic): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	b.daemon = nil
	file, key := b.file("statement", statement, 0o644), filepath.Join(dir, grantPublic)
	if status, stdout, stderr := b.clove("grant", "verify", file, key); status != 0 || !strings.Contains(stdout, "1111111111111111 held tool:fetch, given by uid:1000") || !strings.Contains(stdout, "3 uses") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	var said struct{ Scope, Holder string }
	_, stdout, _ := b.clove("grant", "verify", "--json", file, key)
	if unmarshal(t, stdout, &said); said.Scope != "tool:fetch" || said.Holder != "1111111111111111" {
		t.Errorf("%q", stdout)
	}
	check := exec.Command("sh", "-c", "cp "+key+" public.pem; "+pageLines(t, "docs/kernel.md", "sed -n 1p statement", "openssl pkeyutl"))
	check.Dir = filepath.Dir(file)
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "Verified Successfully") {
		t.Errorf("openssl: %v, %s", err, out)
	}
	changed := b.file("changed", strings.Replace(statement, "tool:fetch", "tool:other", 1), 0o644)
	other := t.TempDir()
	if _, err := openGrantKey(other); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{changed, key}, {file, filepath.Join(other, grantPublic)}, {file, file}, {file, filepath.Join(dir, grantPrivate)}, {key, key}, {dir, key}, {"/nowhere", key}} {
		if status, stdout, stderr := b.clove(append([]string{"grant", "verify"}, words...)...); status != exitFailed || stdout != "" || !strings.HasPrefix(stderr, "clove: ") {
			t.Errorf("%q: %d, %q, %q", words, status, stdout, stderr)
		}
	}
}

// The key is made once.
func TestGrantKeyIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys", "grant")
	first, err := openGrantKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := openGrantKey(dir)
	if err != nil || !first.Equal(again) {
		t.Errorf("another key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, grantPrivate), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openGrantKey(dir); err == nil {
		t.Error("a damaged key was replaced or used")
	}
}

func TestSharedCommandsRefuseWrongWords(t *testing.T) {
	for line, says := range map[string]string{
		"grant": "a word is missing", "grant look one": "does not take", "grant list": "does not take", "grant list one two": "does not take", "grant give one": "does not take",
		"grant list --uses 1 one": "does not take it", "grant give --uses 0 one tool:x": "not a number of uses", "grant give --uses x one tool:x": "not a number of uses",
		"grant give --expires soon one tool:x": "not a time", "grant give --expires 0 one tool:x": "not a time", "grant revoke one a:b": "there is no kind",
		"budget": "a word is missing", "budget show": "does not take", "budget raise one": "does not take", "budget raise one tokens": "names no amount",
		"budget raise one Tokens=1": "not a dimension", "budget raise one tokens=1/day": "stay as they are", "budget raise one tokens=many": "not an amount",
		"budget raise one tokens=1 tokens=2": "twice", "budget reset one 1x": "not a dimension", "budget list a b": "does not take", "budget show --at-end end one": "does not take it",
		"show": "one run", "show a b": "one run",
	} {
		b := newBench(t)
		b.cloved()
		if status, stdout, stderr := b.clove(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, says) || !strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%s: %d, %q, %q", line, status, stdout, stderr)
		}
	}
	for _, line := range []string{"grant list one", "grant check one tool:x", "budget show one", "budget list", "show one"} {
		if status, _, stderr := newBench(t).clove(strings.Fields(line)...); status != exitFailed || !strings.Contains(stderr, "cloved does not run") {
			t.Errorf("%s: %d, %q", line, status, stderr)
		}
	}
}

func TestShow(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	run := agent.Run{Owner: agent.Owner{UID: uint32(os.Geteuid())}, State: agent.StateRunning, Created: time.Now().Add(-time.Hour)}
	run.Spec.ID, run.Spec.Name, run.Spec.Command, run.Spec.Kernel.Namespace = "1111111111111111", "one", []string{"python3", "\x1b[2J"}, "acme/research"
	f.answer(methods.RunGet.Name, api.RunResult{Run: run})
	f.answer(agents.AgentGet.Name, api.AgentResult{ID: run.Spec.ID, Budgets: someBudgets(), Refused: 7})
	f.answer(agents.AgentTree.Name, api.ChildListResult{})
	f.answer(agents.GrantList.Name, api.GrantListResult{Grants: someGrants()})
	f.answers[methods.EventFollow.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		for i := range 12 {
			if err := c.Notify(api.NoteEvent, api.EventNote{Event: &agent.RunEvent{Kind: agent.RunRefused, Detail: fmt.Sprint("denied: call ", i), Correlation: "c"}}); err != nil {
				return nil, err
			}
		}
		return api.EventResult{}, nil
	}
	status, stdout, stderr := b.clove("show", "one")
	for _, want := range []string{"state      running\n", "namespace  acme/research\n", `python3 \x1b[2J`, "refused    7 calls\n", "\nGRANTS\n", "tool:fetch", "\nBUDGETS\n", "1000/run:1111111111111111  tokens", "\nEVENTS\n", "refused  denied: call 11\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if status != 0 || stderr != "" || strings.Contains(stdout, "\x1b") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	var of page
	_, stdout, _ = b.clove("show", "--json", "one")
	if unmarshal(t, stdout, &of); of.Run.Spec.Name != "one" || len(of.Grants) != 3 || len(of.Budgets) != 2 || of.Refused != 7 || len(of.Events) != pageEventsMost || of.Events[0].Detail != "denied: call 2" || of.Events[0].Correlation != "c" {
		t.Errorf("%s", stdout)
	}
	f.answer(agents.AgentGet.Name, api.AgentResult{})
	f.answer(agents.GrantList.Name, api.GrantListResult{})
	f.answer(methods.EventFollow.Name, api.EventResult{})
	if _, stdout, _ = b.clove("show", "one"); !strings.Contains(stdout, "\nGRANTS\nnone\n\nBUDGETS\nnone\n\nEVENTS\nnone\n") {
		t.Errorf("%s", stdout)
	}
}
