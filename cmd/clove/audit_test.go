package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
)

const auditedRun agent.ID = "0123456789abcdef"

// auditBench has a log of 30 decisions; the last one's text is hostile to terminals.
func auditBench(t *testing.T) (b *bench, run func(args ...string) (int, string, string), state string) {
	t.Helper()
	b = newBench(t)
	state = filepath.Join(t.TempDir(), "state")
	keys, err := audit.OpenKeys(audit.KeyDir(state))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Dir(state), audit.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		e := audit.Entry{Kind: audit.KindDecision, Owner: uint32(1000 + i%2), Principal: audit.PrincipalUser(1000), Method: "grant.check", What: fmt.Sprintf("net:host-%d:443", i), Verdict: audit.VerdictAllow}
		if i == 28 {
			e.Run = auditedRun
		}
		if i == 29 {
			e.Verdict, e.What = audit.VerdictDeny, "\x1b[2Jgone\n31 2030 forged"
		}
		if err := log.Enqueue(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return b, func(args ...string) (int, string, string) {
		return b.clove(append([]string{"audit", "--root", state}, args...)...)
	}, state
}

func TestAuditShowsRecords(t *testing.T) {
	b, run, _ := auditBench(t)
	status, stdout, stderr := run("tail")
	if lines := strings.Split(stdout, "\n"); status != 0 || len(lines) != auditTailed+1 || !strings.HasPrefix(lines[0], "11 ") {
		t.Errorf("%d\n%s%s", status, stdout, stderr)
	}
	if strings.Contains(stdout, "\x1b") || !strings.Contains(stdout, `deny grant.check \x1b[2Jgone\n31 2030 forged owner=1001 by=uid:1000`) {
		t.Errorf("%q", stdout)
	}
	for args, want := range map[string]int{"query": 30, "query --owner 1001": 15, "query --verdict deny": 1, "query --text host-7:": 1, "query --after 28": 2, "tail --last 3": 3, "query --until 1h": 0, "query --since 1h --kind decision": 30} {
		if status, stdout, stderr := run(strings.Fields(args)...); status != 0 || strings.Count(stdout, "\n") != want {
			t.Errorf("%s: %d\n%s%s", args, status, stdout, stderr)
		}
	}
	// By the id, also when the run is gone, and by the name as long as it is there.
	if status, stdout, _ := run("query", "--run", string(auditedRun)); status != 0 || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%d, %s", status, stdout)
	}
	if status, stdout, stderr := run("query", "--run", "mine"); status != exitFailed || stdout != "" || !strings.Contains(stderr, `there is no run "mine"`) {
		t.Errorf("%d, %s, %s", status, stdout, stderr)
	}
	b.backend.runs = []agent.Run{{Spec: agent.Spec{ID: auditedRun, Name: "mine"}}}
	if status, stdout, _ := run("query", "--run", "mine"); status != 0 || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%d, %s", status, stdout)
	}
	_, stdout, _ = run("query", "--json", "--last", "1")
	var e audit.Entry
	if unmarshal(t, stdout, &e); e.Number != 30 || !strings.Contains(e.What, "\x1b") {
		t.Errorf("%q", stdout)
	}
}

func TestAuditVerifiesExportsAndProves(t *testing.T) {
	_, run, state := auditBench(t)
	if status, stdout, stderr := run("verify"); status != 0 || !strings.HasPrefix(stdout, "30 records are as they were written, and agree with 1 checkpoints") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	file := filepath.Join(t.TempDir(), "out.jsonl")
	if status, stdout, stderr := run("export", file); status != 0 || !strings.HasPrefix(stdout, "30 records in ") {
		t.Fatalf("%d, %q, %q", status, stdout, stderr)
	}
	if status, _, _ := run("export", file); status == 0 {
		t.Error("an export replaces a file")
	}
	keys := filepath.Join(audit.KeyDir(state), "public")
	for _, args := range [][]string{{"verify", "--checkpoint", file + ".checkpoint"}, {"verify", "--file", file, "--checkpoint", file + ".checkpoint", "--key", keys}} {
		if status, stdout, stderr := run(args...); status != 0 {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
	_, proof, _ := run("prove", "17")
	proved := filepath.Join(t.TempDir(), "proof")
	if err := os.WriteFile(proved, []byte(proof), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := run("verify", "--proof", proved, "--key", keys); status != 0 || !strings.Contains(stdout, "host-16") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	segment := filepath.Join(audit.Dir(state), "00000000000000000001.jsonl")
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, bytes.Replace(text, []byte("host-12"), []byte("h0st-12"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, _ := run("verify"); status != exitFailed || !strings.Contains(stdout, "record 13: edited") {
		t.Errorf("%d, %q", status, stdout)
	}
	var report audit.Report
	_, stdout, _ := run("verify", "--json")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Problem == nil || report.Problem.Number != 13 {
		t.Errorf("%q, %v", stdout, err)
	}
	if status, _, stderr := run("export", file+"2"); status != exitFailed || !strings.Contains(stderr, "record 13") {
		t.Errorf("%d, %q", status, stderr)
	}
}

// Lines behind the log's head are shown as no records and end with status 1, and so does a log
// that no checkpoint covers. The control is the log before.
func TestAuditShowsNothingBehindTheHead(t *testing.T) {
	_, run, state := auditBench(t)
	_, before, _ := run("query")
	segment := filepath.Join(audit.Dir(state), "00000000000000000001.jsonl")
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	forged := bytes.Replace(lines[28], []byte(`"number":29`), []byte(`"number":31`), 1)
	if err := os.WriteFile(segment, append(text, forged...), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := run("query"); status != exitFailed || stdout != before || !strings.Contains(stderr, "record 31: inserted") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, stderr := run("tail", "--last", "1"); status != exitFailed || !strings.HasPrefix(stdout, "30 ") || !strings.Contains(stderr, "inserted") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, _ := run("verify"); status != exitFailed || !strings.Contains(stdout, "record 31: inserted") {
		t.Errorf("%d, %q", status, stdout)
	}
}

func TestAuditVerifyNamesUncoveredRecords(t *testing.T) {
	b := newBench(t)
	state := filepath.Join(t.TempDir(), "state")
	if _, err := audit.OpenKeys(audit.KeyDir(state)); err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Dir(state), audit.Options{}) // without the key, as a forger opens it
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := log.Append(make([]audit.Entry, 200)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := b.clove("audit", "verify", "--root", state); status != exitFailed || !strings.Contains(stdout, "uncovered: records 1 to 2400") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestAuditRefusesWrongWords(t *testing.T) {
	b, run, _ := auditBench(t)
	for _, line := range []string{"", "look", "tail x", "prove", "prove x", "prove 0", "prove 31", "export", "verify --owner 0", "query --follow", "query --owner alice", "query --last -1", "verify --key /nowhere"} {
		if status, stdout, stderr := run(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.HasPrefix(stderr, "clove: ") {
			t.Errorf("%q: %d, %q, %q", line, status, stdout, stderr)
		}
	}
	if status, _, stderr := b.clove("audit", "verify", "--root", t.TempDir()); status != exitFailed || !strings.Contains(stderr, "there is no such log") {
		t.Errorf("%d, %q", status, stderr)
	}
}

// TestAuditPageExample does what the worked example of docs/audit.md shows.
func TestAuditPageExample(t *testing.T) {
	_, run, state := auditBench(t)
	keys, err := os.ReadFile(filepath.Join(audit.KeyDir(state), "public"))
	if err != nil {
		t.Fatal(err)
	}
	page := readDocument(t, "docs/audit.md")
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("public", keys, 0o600); err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(page, "## A worked example")
	example, _, _ = strings.Cut(example, "\n## ")
	commands := strings.Split(example, "    $ ")[1:]
	for _, command := range commands {
		line, want, _ := strings.Cut(command, "\n")
		want = strings.TrimSpace(strings.ReplaceAll(want, "/root/", dir+"/"))
		var got string
		if words, is := strings.CutPrefix(strings.TrimPrefix(line, "sudo "), "clove audit "); is {
			_, got, _ = run(strings.Fields(words)...)
		} else {
			text, err := exec.Command("sh", "-c", line).CombinedOutput()
			if got = string(text); err != nil {
				t.Fatalf("%s: %v, %s", line, err, text)
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s shows\n%s\nwant\n%s", line, got, want)
		}
	}
	if len(commands) != 4 {
		t.Errorf("%d commands", len(commands))
	}
}
