//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestTheWorkspaceIsCopyOnWrite runs a script that changes its own folder: the host sees
// nothing until apply, which writes as the folder's owner.
func TestTheWorkspaceIsCopyOnWrite(t *testing.T) {
	h := newHost(t)
	const owner = 4321
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agent.sh": "echo new > added; echo more >> kept; rm gone; ln -s /etc/passwd escape\n",
		"kept":     "old\n", "gone": "x\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	if r := h.clove("run", "--name", "writer", filepath.Join(dir, "agent.sh")); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	if listing := namesIn(t, dir); listing != "agent.sh gone kept" {
		t.Fatalf("the host's folder changed: %s", listing)
	}
	diff := h.clove("diff", "writer").stdout
	for _, want := range []string{"A /workspace/added", "C /workspace/kept", "D /workspace/gone", "A /workspace/escape"} {
		if !strings.Contains(diff, want+"\n") && !strings.Contains(diff, want+" ") {
			t.Errorf("diff does not list %q:\n%s", want, diff)
		}
	}
	if r := h.clove("apply", "writer"); r.code == 0 || namesIn(t, dir) != "agent.sh gone kept" {
		t.Errorf("apply without --yes and without a terminal: exit %d, %s", r.code, namesIn(t, dir))
	}
	applied := h.clove("apply", "writer", "--yes")
	if listing := namesIn(t, dir); listing != "added agent.sh kept" {
		t.Errorf("after apply: %s\n%s%s", listing, applied.stdout, applied.stderr)
	}
	if !strings.Contains(applied.stdout+applied.stderr, "refused") {
		t.Errorf("the link out of the workspace is not named as refused:\n%s%s", applied.stdout, applied.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(text) != "old\nmore\n" {
		t.Errorf("kept reads %q, %v", text, err)
	}
	if got := ownerOf(t, filepath.Join(dir, "added")); got != owner {
		t.Errorf("added belongs to %d, want the folder's owner %d", got, owner)
	}
	if r := h.clove("rm", "writer"); r.code != 0 || namesIn(t, filepath.Join(h.state, "layers")) != "" {
		t.Errorf("rm: exit %d, layers left: %s", r.code, namesIn(t, filepath.Join(h.state, "layers")))
	}
}

func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestNothingChangedNothingKept: a run that wrote nothing leaves a record and no layer.
func TestNothingChangedNothingKept(t *testing.T) {
	h := newHost(t)
	h.clove("run", "--name", "quiet", "--", "true")
	if left := namesIn(t, filepath.Join(h.state, "layers")); left != "" {
		t.Errorf("layers: %s", left)
	}
	if r := h.clove("inspect", "quiet"); r.code != 0 || !strings.Contains(r.stdout, `"exited"`) {
		t.Errorf("inspect: exit %d\n%s", r.code, r.stdout)
	}
	h.clove("rm", "quiet")
}

// TestHostFilesAreMasked: files outside the base system are not there, for root inside too.
// The control reads the same files outside.
func TestHostFilesAreMasked(t *testing.T) {
	h := newHost(t)
	secret := filepath.Join("/var/lib", filepath.Base(h.state)+filepath.Base(t.TempDir())+"-secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(secret) })
	rootHash, err := os.ReadFile("/etc/shadow")
	if err != nil || len(rootHash) == 0 {
		t.Fatalf("control: root of the host reads no /etc/shadow: %v", err)
	}
	for _, user := range []string{"agent", "root"} {
		r := h.agent([]string{"--user", user}, "sh", "-c",
			"cat "+secret+" /root/.bashrc /etc/ssh/sshd_config /etc/machine-id /var/log/dpkg.log 2>/dev/null; cut -d: -f2 /etc/shadow 2>/dev/null | sort -u; ls -A /home /srv /mnt /media /boot 2>/dev/null | grep -v : ; true")
		got := strings.Fields(r.stdout)
		for _, word := range got {
			if word != "*" && word != "agent" {
				t.Errorf("%s sees %q", user, got)
				break
			}
		}
	}
}

// TestANameThatTheHostMakesLaterDoesNotShow: neither in / nor in /etc.
func TestANameThatTheHostMakesLaterDoesNotShow(t *testing.T) {
	h := newHost(t)
	r := h.start(nil, "sh", "-c", "echo up; read x; ls -d /later-clove /etc/later-clove 2>/dev/null | wc -l")
	r.line()
	for _, path := range []string{"/later-clove", "/etc/later-clove"} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
	}
	if end := r.wait(); end.stdout != "0\n" {
		t.Errorf("the agent sees %s of them", end.stdout)
	}
}

// TestBindsAndTmpfs: a writable bind changes the host, writes to a read-only bind and a
// read-only root fail with EROFS, and a tmpfs is private.
func TestBindsAndTmpfs(t *testing.T) {
	h := newHost(t)
	data := t.TempDir()
	h.agent([]string{"-v", data + ":/data"}, "sh", "-c", "echo hi > /data/file").want(t, agent.StatusExited, 0, "")
	if text, err := os.ReadFile(filepath.Join(data, "file")); err != nil || string(text) != "hi\n" {
		t.Errorf("the host reads %q, %v", text, err)
	}
	for name, row := range map[string]struct {
		flags  []string
		script string
	}{
		"read-only bind": {[]string{"-v", data + ":/data:ro"}, "echo no > /data/file"},
		"read-only root": {[]string{"--read-only", "--user", "root"}, "touch /usr/x"},
	} {
		r := h.agent(row.flags, "sh", "-c", "("+row.script+") 2>&1 | grep -o 'Read-only file system'")
		if r.stdout != "Read-only file system\n" {
			t.Errorf("%s: %q %s", name, r.stdout, r.stderr)
		}
	}
	h.agent([]string{"--read-only"}, "sh", "-c", "touch /workspace/a /tmp/b ~/c").want(t, agent.StatusExited, 0, "")
	h.agent([]string{"--tmpfs", "/scratch:size=1M"}, "sh", "-c", "stat -f -c %T /scratch; head -c 2M /dev/zero > /scratch/x 2>/dev/null || echo full").
		want(t, agent.StatusExited, 0, "tmpfs\nfull\n")
}
