//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// userDir makes a directory of the member below one that everybody may enter.
func userDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), memberUID, memberUID); err != nil {
			t.Fatal(err)
		}
	}
	for _, do := range []error{os.Chown(dir, memberUID, memberUID), os.Chmod(dir, 0o755)} {
		if do != nil {
			t.Fatal(do)
		}
	}
	return dir
}

// Files in a user's workspace that belong to others are out of the agent's reach, also for
// root inside. The control: if root names the workspace, the agent can read them.
func TestDaemonWorkspaceOfAUser(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	dir := userDir(t, map[string]string{"mine": "mine\n"})
	if err := os.WriteFile(filepath.Join(dir, "roots"), []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--user", "root"}} {
		args := append([]string{"run", "-d", "--rm", "--name", "reader", "--workspace", dir}, flags...)
		args = append(args, "--", "sh", "-c", "cat /workspace/mine /workspace/roots; sleep 1000")
		if r := d.as(memberUID, group, args...); r.code != 0 {
			t.Fatalf("%s", r.stderr)
		}
		follow := d.follow("logs", "-f", members("reader"))
		if got := []string{follow.line(), follow.line()}; strings.Contains(strings.Join(got, ""), "SECRET") {
			t.Errorf("%v: %q", flags, got)
		}
		d.ok("rm", "-f", members("reader"))
	}
	rooted := userDir(t, nil)
	if err := os.Chown(rooted, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rooted, "key"), []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := d.clove("run", "--workspace", rooted, "--", "cat", "/workspace/key"); r.stdout != "SECRET\n" {
		t.Errorf("the control: root's agent acts as the directory's owner: %d, %s", r.code, r.stderr)
	}
	if r := d.as(memberUID, group, "run", "-d", "--name", "thief", "--workspace", rooted, "--", "sh", "-c", "cat /workspace/key; echo done"); r.code != 0 {
		t.Fatalf("%s", r.stderr)
	}
	d.clove("wait", members("thief"))
	if text := d.ok("logs", members("thief")); strings.Contains(text, "SECRET") || !strings.Contains(text, "done") {
		t.Errorf("a user's agent reads what only root may: %q", text)
	}
}

// diff and apply of a live run by its owner: written files belong to the owner and have no
// special bits, and the agent continues.
func TestDaemonApplyWhileRunning(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	dir := userDir(t, map[string]string{"a": "old\n", "gone": "x\n"})
	script := `cd /workspace; echo new >a; rm gone; echo x >set; chmod 6755 set; ln a hard; ln -s /etc/passwd out; ln -s a in; mkfifo fifo; echo x >.envrc; echo x >AGENTS.md; echo ready; while :; do echo tick; sleep 0.1; done`
	if r := d.as(memberUID, group, "run", "-d", "--name", "w", "--workspace", dir, "--", "sh", "-c", script); r.code != 0 {
		t.Fatalf("%s", r.stderr)
	}
	follow := d.follow("logs", "-f", members("w"))
	for follow.line() != "ready" {
	}
	if r := d.as(memberUID, group, "diff", "w"); r.code != 0 || !strings.Contains(r.stdout, "C /workspace/a\n") || !strings.Contains(r.stdout, "D /workspace/gone\n") {
		t.Errorf("diff: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	for _, verb := range [][]string{{"diff", "w"}, {"apply", "-y", "w"}} {
		if r := d.as(otherUID, group, verb...); r.code == 0 || !strings.Contains(r.stderr, "there is no run") {
			t.Errorf("another member's %v: %d, %s", verb, r.code, r.stderr)
		}
	}
	r := d.as(memberUID, group, "apply", "-y", "w")
	for _, refused := range []string{"/workspace/out ", "/workspace/fifo ", "/workspace/.envrc (direnv executes it) ", "/workspace/AGENTS.md (instructions for "} {
		if !strings.Contains(r.stdout, refused) || r.code != 1 {
			t.Errorf("%s is not refused: %d, %s%s", refused, r.code, r.stdout, r.stderr)
		}
	}
	for _, name := range []string{"a", "set", "hard", "in"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != memberUID || st.Gid != memberUID || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s: %d:%d, %v", name, st.Uid, st.Gid, info.Mode())
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); !os.IsNotExist(err) {
		t.Errorf("what was deleted is there: %v", err)
	}
	for i, row := range []struct{ flag, path string }{{"--allow-instructions", "AGENTS.md"}, {"--allow-executable-config", ".envrc"}} {
		if _, err := os.Lstat(filepath.Join(dir, row.path)); !os.IsNotExist(err) {
			t.Errorf("%s was written without consent: %v", row.path, err)
		}
		// The first leaves out what only the second writes.
		r := d.as(memberUID, group, "apply", "-y", row.flag, "w")
		if left := strings.Contains(r.stderr, "--allow-executable-config"); left != (i == 0) {
			t.Errorf("%s: %d, %s", row.flag, r.code, r.stderr)
		}
		if _, err := os.Lstat(filepath.Join(dir, row.path)); err != nil {
			t.Errorf("%s is not written: %v", row.path, err)
		}
	}
	if tick := follow.line(); tick != "tick" {
		t.Errorf("the agent does not go on: %q", tick)
	}
}

// A user who replaces the workspace by a link to root's directory learns nothing of it, and
// nothing is written there: diff and apply follow it with the user's rights. The control is
// root's own diff.
func TestDaemonWorkspaceSwapped(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	top := userDir(t, nil)
	dir, secret := filepath.Join(top, "w"), t.TempDir()
	for _, err := range []error{os.Mkdir(dir, 0o755), os.Chown(dir, memberUID, memberUID), os.WriteFile(filepath.Join(dir, "key"), []byte("x"), 0o644),
		os.Chown(filepath.Join(dir, "key"), memberUID, memberUID), os.Chmod(secret, 0o700), os.WriteFile(filepath.Join(secret, "key"), []byte("TOPSECRET"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := d.as(memberUID, group, "run", "-d", "--name", "w", "--workspace", dir, "--", "sh", "-c", "rm /workspace/key; echo planted >/workspace/new"); r.code != 0 {
		t.Fatalf("%s", r.stderr)
	}
	d.clove("wait", members("w"))
	for _, err := range []error{os.Rename(dir, dir+".old"), os.Symlink(secret, dir)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if text := d.ok("diff", "--json", members("w")); !strings.Contains(text, fmt.Sprintf(`"size": %d`, len("TOPSECRET"))) && !strings.Contains(text, fmt.Sprintf(`"size":%d`, len("TOPSECRET"))) {
		t.Errorf("the control, root's own diff, does not see the file: %s", text)
	}
	if r := d.as(memberUID, group, "diff", "--json", "w"); strings.Contains(r.stdout, `9,`) && strings.Contains(r.stdout, "key") {
		t.Errorf("a user learns of root's file: %s", r.stdout)
	}
	if r := d.as(memberUID, group, "apply", "-y", "w"); r.code == 0 {
		t.Errorf("applied: %s", r.stdout)
	}
	if now, err := os.ReadDir(secret); err != nil || len(now) != 1 {
		t.Errorf("root's directory holds %v, %v", now, err)
	}
}

// A client that resumes after the last number it got receives every event and every line once,
// although cloved was killed.
func TestDaemonResumeOverAKill(t *testing.T) {
	d := newCloved(t)
	d.detach("talker", `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; sleep 0.01; done`)
	var line int64
	var event uint64
	for round, over := 0, false; !over; round++ {
		c, ctx := d.connect()
		result, err := client.Do(ctx, c, methods.RunGet, api.RunParams{Run: "talker"})
		if err != nil {
			t.Fatal(err)
		}
		over = result.Run.Record != nil
		err = c.Logs(ctx, api.LogsParams{RunParams: api.RunParams{Run: "talker"}, After: line}, func(lines []api.LogLine) error {
			for _, l := range lines {
				if l.Number != line+1 || l.Text != fmt.Sprint(l.Number) {
					t.Errorf("behind line %d comes %d, %q", line, l.Number, l.Text)
				}
				line = l.Number
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		after := event
		last, err := client.Each(ctx, c, methods.EventFollow, api.EventParams{After: &after}, func(n api.EventNote) error {
			if n.Gap || n.Event.Sequence != event+1 {
				t.Errorf("behind event %d comes %+v", event, n)
			}
			event = n.Event.Sequence
			return nil
		})
		if err != nil || last.Last != event {
			t.Errorf("events to %d: %d, %v", event, last.Last, err)
		}
		c.Close() // the number of rounds depends on the speed of the writing agent
		if !over && round < 4 {
			d.stop(unix.SIGKILL)
			d.serve()
		}
	}
	if line != 300 {
		t.Errorf("%d lines", line)
	}
}
