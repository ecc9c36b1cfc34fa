//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// hostileRoot is a root file system made to escape from the sandbox. It contains the probe,
// and links where clove mounts and writes.
func hostileRoot(t *testing.T, links map[string]string) string {
	t.Helper()
	root := t.TempDir()
	text, err := os.ReadFile(probeProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "probe"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range links {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestHostileRootLeadsNowhere: absolute links, links with "..", and links in the place of what
// clove makes, all to a folder of the host.
func TestHostileRootLeadsNowhere(t *testing.T) {
	h := newHost(t)
	secret, data := t.TempDir(), t.TempDir()
	for _, path := range []string{secret + "/secret", data + "/data"} {
		if err := os.WriteFile(path, []byte("of the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	climb := strings.Repeat("../", 20) + secret[1:]
	root := hostileRoot(t, map[string]string{
		"absolute": secret, "climb": climb, "workspace": secret, "tmp": secret, "mnt": secret,
		"etc/passwd": secret + "/secret", "etc/hostname": secret + "/secret", "etc/resolv.conf": secret + "/new",
	})
	// Control: outside, the links lead to the secret.
	for _, name := range []string{"absolute", "climb", "workspace", "tmp", "mnt"} {
		if _, err := os.Stat(filepath.Join(root, name, "secret")); err != nil && name != "climb" {
			t.Fatalf("control: %v", err)
		}
	}
	before := listing(t, secret)
	for _, user := range []string{"agent", "root"} {
		for _, flags := range [][]string{
			nil, {"--read-only"}, {"--workspace", data}, {"-v", data + ":/mnt/data"}, {"-v", data + "/data:/mnt/new"},
			{"--tmpfs", "/mnt"}, {"--tmpfs", "/absolute/deep"}, {"-v", data + ":/etc/passwd"},
		} {
			paths := []string{"/absolute/secret", "/climb/secret", "/workspace/secret", "/tmp/secret", "/mnt/secret", "/etc/passwd"}
			r := h.agent(append([]string{"--rootfs", root, "--user", user}, flags...), append([]string{"/probe", "read"}, paths...)...)
			if r.record.Status == agent.StatusStartFailed {
				continue // a refusal is fine too, see below
			}
			for name, result := range attacked(t, []byte(r.stdout)) {
				if result.Outcome() == probe.Succeeded {
					t.Errorf("%s %v: %s", user, flags, name)
				}
			}
			if r.code != 0 {
				t.Errorf("%s %v: exit %d\n%s", user, flags, r.code, r.stderr)
			}
		}
		// Control: the plain run is not refused.
		r := h.agent([]string{"--rootfs", root, "--user", user}, "/probe", "read", "/etc/hosts")
		if !attacked(t, []byte(r.stdout))["read /etc/hosts"].OK {
			t.Errorf("%s: clove's own file is not there: %s%s", user, r.stdout, r.stderr)
		}
	}
	if after := listing(t, secret); after != before {
		t.Errorf("something was made through a link:\n%s\nbefore\n%s", after, before)
	}
}

// listing returns a folder's names and modes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			text.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestLinksForWhatCloveNeedsAreRefused: each is named in the error, and nothing is started.
func TestLinksForWhatCloveNeedsAreRefused(t *testing.T) {
	h := newHost(t)
	for name, reason := range map[string]string{
		"proc": "/proc is a symbolic link", "sys": "/sys is a symbolic link", "dev": "/dev is a symbolic link",
		"etc": "/etc is a symbolic link", "var": "/var of the root: a symbolic link that leads nowhere",
		"home": "/home of the root: a symbolic link that leads nowhere",
	} {
		root := hostileRoot(t, map[string]string{name: t.TempDir()})
		r := h.clove("run", "--rm", "--rootfs", root, "--", "/probe", "ids")
		if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, reason) || r.stdout != "" {
			t.Errorf("%s: exit %d, %q\n%s", name, r.code, r.stdout, r.stderr)
		}
	}
}

// TestBindTargetsFollowLinksInside: a target behind a link is mounted where the link leads
// inside the root, never where it leads on the host.
func TestBindTargetsFollowLinksInside(t *testing.T) {
	h := newHost(t)
	data, victim := t.TempDir(), t.TempDir()
	if err := os.WriteFile(data+"/data", []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := hostileRoot(t, map[string]string{"out": victim})
	inside := filepath.Join(root, victim) // so that the link has a target inside the root too
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	// Control: outside, the link leads to the victim.
	if to, err := filepath.EvalSymlinks(root + "/out"); err != nil || to != victim {
		t.Fatalf("control: %s, %v", to, err)
	}
	r := h.agent([]string{"--rootfs", root, "-v", data + ":/out/here"}, "/probe", "read", "/out/here/data", victim+"/here/data")
	for name, result := range attacked(t, []byte(r.stdout)) {
		if !result.OK {
			t.Errorf("%s: %+v", name, result)
		}
	}
	for _, dir := range []string{victim, inside} {
		if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
			t.Errorf("%s holds %v, %v", dir, names, err)
		}
	}
}
