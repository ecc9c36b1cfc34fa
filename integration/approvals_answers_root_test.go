//go:build root

package integration

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// settled waits until no question waits.
func (d *cloved) settled(t *testing.T) {
	t.Helper()
	until(t, "no question waits", func() bool {
		return strings.TrimSpace(d.ok("approvals", "list", "--state", "waiting", "--json")) == "[]"
	})
}

// A yes for one time is for one connection, and the next one is a question again. The control is a yes to the end of the run.
func TestAYesIsForOneConnection(t *testing.T) {
	_, d, n := asksIn(t, groupName, false)
	const twice = "curl -sS -m 60 http://api.example.com/; curl -sS -m 60 http://api.example.com/"
	d.ok("run", "-d", "--name", "control", "--network", "ask", "--", "sh", "-c", twice)
	d.ok("approvals", "allow", "--this-run", d.question(t).ID)
	d.ok("wait", "control")
	if n.count(apiSite) != 2 {
		t.Errorf("control: %d connections", n.count(apiSite))
	}
	d.ok("run", "-d", "--name", "once", "--network", "ask", "--", "sh", "-c", twice)
	first := d.question(t)
	d.ok("approvals", "allow", "--once", first.ID)
	until(t, "the second connection is a question", func() bool {
		out := d.ok("approvals", "list", "--run", "once", "--state", "waiting", "--json")
		return strings.Contains(out, `"state"`) && !strings.Contains(out, first.ID)
	})
	d.stop(unix.SIGKILL) // nothing is used twice by that
	d.serve()
	if second := d.question(t); n.count(apiSite) != 3 || second.ID == first.ID {
		t.Errorf("%d connections, %+v", n.count(apiSite), second)
	}
	d.ok("approvals", "deny", d.question(t).ID)
	d.ok("wait", "once")
	if n.count(apiSite) != 3 {
		t.Errorf("%d connections", n.count(apiSite))
	}
	if out := d.ok("approvals", "show", first.ID); !strings.Contains(out, "allowed once, and used") {
		t.Errorf("%s", out)
	}
}

// With net=2 two users say yes: the same one twice is refused, and so is a user whom the configuration does not name. That
// one can answer is the control.
func TestTwoUsersSayYes(t *testing.T) {
	d := newClovedFor(t, groupName)
	d.stop(unix.SIGTERM)
	d.settings = fmt.Sprintf("approvers: [%d]\n", memberUID)
	n := newInternet(t, d.host)
	d.serve()
	group := []uint32{groupID}
	d.ok("run", "-d", "--name", "both", "--network", "allowlist", "--ask", "net=2", "--", "sh", "-c", getAPI)
	asked := d.question(t)
	if r := d.as(memberUID+1, group, "approvals", "allow", asked.ID); r.code == 0 || !strings.Contains(r.stderr, "no question") {
		t.Errorf("a user without a right: %+v", r)
	}
	if out := d.ok("approvals", "allow", asked.ID); !strings.Contains(out, "2 users must say yes, and 1 have") {
		t.Errorf("%s", out)
	}
	if r := d.clove("approvals", "allow", asked.ID); r.code == 0 || n.count(apiSite) != 0 {
		t.Errorf("the same user twice: %+v, %d connections", r, n.count(apiSite))
	}
	if r := d.as(memberUID, group, "approvals", "allow", asked.ID); r.code != 0 || !strings.Contains(r.stdout, fmt.Sprintf("allowed by user 0, allowed by user %d", memberUID)) {
		t.Errorf("%+v", r)
	}
	d.ok("wait", "both")
	if n.count(apiSite) != 1 {
		t.Errorf("%d connections: %s", n.count(apiSite), d.ok("logs", "both"))
	}
}

// A yes for ever writes the rule into a policy of the answerer's own, with which the next run has no question.
func TestAYesForEverIsInAPolicy(t *testing.T) {
	_, d, n := asksIn(t, groupName, false)
	home := t.TempDir()
	for _, dir := range []string{filepath.Dir(home), home} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, memberUID, memberUID); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	group := []uint32{groupID}
	start := func(name string, flags ...string) {
		t.Helper()
		if r := d.as(memberUID, group, append(append([]string{"run", "-d", "--name", name}, flags...), "--", "sh", "-c", getAPI)...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	start("first", "--network", "ask")
	id := d.question(t).ID
	file := filepath.Join(home, ".config/clove/policies/approved.yaml")
	if r := d.clove("approvals", "allow", "--always", id); r.code == 0 || !strings.Contains(r.stderr, "belongs to user") {
		t.Errorf("another's run: %+v", r)
	}
	if r := d.as(memberUID, group, "approvals", "allow", "--always", id); r.code != 0 || !strings.Contains(r.stderr, file+` allows "api.example.com:80"`) {
		t.Errorf("%+v", r)
	}
	d.as(memberUID, group, "wait", "first")
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `- "api.example.com:80"`) {
		t.Errorf("%s, %v", text, err)
	}
	start("second", "--policy", "approved")
	d.as(memberUID, group, "wait", "second")
	if out := d.ok("approvals", "list", "--run", "second", "--json"); strings.TrimSpace(out) != "[]" || n.count(apiSite) != 2 {
		t.Errorf("%d connections, %s", n.count(apiSite), out)
	}
	var rules []struct {
		Rule  string
		Times int
	}
	if err := json.Unmarshal([]byte(d.ok("approvals", "suggest", "--json")), &rules); err != nil || len(rules) != 1 || rules[0].Rule != "api.example.com:80" || rules[0].Times != 1 {
		t.Errorf("%+v, %v", rules, err)
	}
}

// A command of the owner's answers with the proof of its key. One that has another key is refused, which is in the audit log,
// and the question waits for people.
func TestACommandAnswers(t *testing.T) {
	_, d, n := asksIn(t, groupName, false)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, other := write("key", "0123456789abcdef0123456789abcdef\n", 0o600), write("other", "fedcba9876543210fedcba9876543210\n", 0o600)
	answers := func(with string) string {
		return write("answers-"+filepath.Base(with), fmt.Sprintf(`#!/bin/sh
proof=$(printf 'clove-approval-1\n%%s\n%%s\n%%s\n%%s\n' "$CLOVE_APPROVAL" "$CLOVE_DIGEST" "$CLOVE_EXPIRES" allow | openssl dgst -sha256 -hmac "$(cat %s)" -r)
echo "{\"answer\":\"allow\",\"hmac\":\"${proof%%%% *}\"}"
`, with), 0o700)
	}
	run := func(name, command string) {
		t.Helper()
		d.ok("run", "-d", "--name", name, "--network", "ask", "--on-ask", command, "--on-ask-key", key, "--", "sh", "-c", getAPI)
	}
	run("right", answers(key))
	d.ok("wait", "right")
	if out := d.ok("approvals", "list", "--run", "right", "--json"); n.count(apiSite) != 1 || !strings.Contains(out, `"command": true`) {
		t.Errorf("%d connections, %s", n.count(apiSite), out)
	}
	run("forged", answers(other))
	asked := d.question(t)
	until(t, "the refusal is in the audit log", func() bool {
		return strings.Contains(d.ok("audit", "query", "--json", "--verdict", "deny"), "approval.respond")
	})
	if again := d.question(t); n.count(apiSite) != 1 || again.ID != asked.ID {
		t.Errorf("%d connections, %+v", n.count(apiSite), again)
	}
	d.ok("approvals", "deny", asked.ID)
	d.ok("wait", "forged")
	d.settled(t)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := d.clove("run", "-d", "--network", "ask", "--on-ask", "true", "--on-ask-key", key, "--", "true"); r.code == 0 && !strings.Contains(d.ok("ps", "-a"), "start-failed") {
		t.Errorf("a key that others may read: %+v", r)
	}
}

// A service at a URL answers with the proof of the owner's key. The control is one that has another key.
func TestAServiceAnswers(t *testing.T) {
	_, d, n := asksIn(t, groupName, false)
	const right, wrong = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(right), 0o600); err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if err := n.here.Do(func() (err error) { listener, err = net.Listen("tcp", "127.0.0.1:0"); return err }); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 8)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got struct {
			Approval struct{ ID, Digest, Expires, What string }
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s, %v", r.Method, err)
		}
		proof := hmac.New(sha256.New, []byte(map[string]string{"/right": right, "/wrong": wrong}[r.URL.Path]))
		fmt.Fprintf(proof, "clove-approval-1\n%s\n%s\n%s\nallow\n", got.Approval.ID, got.Approval.Digest, got.Approval.Expires)
		fmt.Fprintf(w, `{"answer":"allow","hmac":"%x"}`, proof.Sum(nil))
		asked <- got.Approval.What
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	for path, connections := range map[string]int{"/wrong": 0, "/right": 1} {
		before := n.count(apiSite)
		d.ok("run", "-d", "--name", path[1:], "--network", "ask", "--on-ask", "http://"+listener.Addr().String()+path, "--on-ask-key", key, "--", "sh", "-c", getAPI)
		select {
		case what := <-asked:
			if what != "connect to api.example.com:80" {
				t.Errorf("%q", what)
			}
		case <-time.After(patience()):
			t.Fatal("the service is not asked")
		}
		if connections == 0 {
			until(t, "the refusal is in the audit log", func() bool {
				return strings.Contains(d.ok("audit", "query", "--json", "--verdict", "deny"), "approval.respond")
			})
			d.ok("approvals", "deny", d.question(t).ID)
		}
		d.ok("wait", path[1:])
		if got := n.count(apiSite) - before; got != connections {
			t.Errorf("%s: %d connections", path, got)
		}
	}
}
