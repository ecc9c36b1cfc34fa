package rootfs

import (
	"strings"
	"testing"
)

// looks compares sights with words: r, w, rw, or - for neither.
func looks(t *testing.T, name string, cfg Config, want map[string]string) {
	t.Helper()
	for at, wanted := range want {
		s, err := cfg.Look(at)
		got := ""
		if s.Readable {
			got = "r"
		}
		if s.Writable {
			got += "w"
		}
		if got == "" {
			got = "-"
		}
		if err != nil || got != wanted || s.By == "" {
			t.Errorf("%s: %s is %s (%s), want %s: %v", name, at, got, s.By, wanted, err)
		}
	}
}

func TestLookOverTheBase(t *testing.T) {
	t.Parallel()
	looks(t, "the agent's user", fixedConfig(), map[string]string{
		"/": "r", "/usr/bin/env": "r", "/bin/sh": "r", "/opt": "r", "/lib64/x": "r",
		"/home": "r", "/home/ann/.ssh/id": "-", "/root": "-", "/root/.bashrc": "-", "/srv/www": "-", "/mnt": "-", "/boot/vmlinuz": "-",
		"/var/lib/mysql": "-", "/var/log/auth.log": "-", "/var/lib/dpkg/status": "r", "/run/docker.sock": "-", "/var/run/docker.sock": "-",
		"/etc": "r", "/etc/passwd": "r", "/etc/shadow": "-", "/etc/ssh/ssh_host_key": "-", "/etc/sudoers": "-", "/etc/resolv.conf": "r",
		"/etc/apt/sources.list": "r", "/etc/apt/auth.conf": "-", "/etc/ssl/certs/ca.pem": "r", "/etc/ssl/private/key": "-", "/etc/chromium.d/apikeys": "-", "/etc/chromium.d/x": "r",
		"/tmp": "rw", "/tmp/x/y": "rw", "/var/tmp/x": "rw", "/home/agent": "rw", "/home/agent/.config/x": "rw", "/workspace/a.py": "rw", "/var/lock/x": "rw",
		"/sys/devices/system/cpu/online": "r", "/sys/class/net": "-", "/newplace": "-",
	})
	root := fixedConfig()
	root.AgentUID, root.AgentGID = 0, 0
	looks(t, "root inside", root, map[string]string{"/usr/bin/env": "rw", "/root/.bashrc": "w", "/etc/shadow": "rw", "/home/ann": "w", "/sys/class/net": "-", "/tmp/x": "rw", "/newplace": "w"})
}

func TestLookAtAReadOnlyRoot(t *testing.T) {
	t.Parallel()
	cfg := fixedConfig()
	cfg.ReadOnly, cfg.AgentUID, cfg.AgentGID = true, 0, 0
	looks(t, "read-only", cfg, map[string]string{"/usr/x": "r", "/etc/hosts": "r", "/tmp/x": "rw", "/workspace/x": "rw", "/home/agent": "rw", "/root/x": "-", "/run/lock/x": "r"})
	cfg.Writable = []string{"/tmp"}
	looks(t, "only /tmp", cfg, map[string]string{"/tmp/x": "rw", "/workspace/x": "r", "/home/agent": "r", "/var/tmp/x": "r"})
	cfg.Workspace = "/home/ann/job"
	looks(t, "a workspace that is read-only", cfg, map[string]string{"/workspace/x": "r"})
	cfg.Writable = nil
	looks(t, "a workspace", cfg, map[string]string{"/workspace/x": "rw"})
}

func TestLookAtMounts(t *testing.T) {
	t.Parallel()
	cfg := fixedConfig()
	cfg.ReadOnly = true
	cfg.Binds = []Bind{{Source: "/srv/a", Target: "/data"}, {Source: "/srv/b", Target: "/data/deep", ReadOnly: true}, {Source: "/srv/usr", Target: "/usr/share/doc"}}
	cfg.Tmpfs = []Tmpfs{{Target: "/cache"}, {Target: "/var/root", Mode: 0o755}}
	cfg.Prefixes, cfg.Services = []string{"/root/.pyenv/versions/3.11.7"}, "/run/clove/x/services"
	looks(t, "mounts", cfg, map[string]string{"/data/x": "rw", "/data": "rw", "/data/deep/x": "r", "/data/deeper": "rw", "/usr/share/doc/x": "rw", "/usr/share/x": "r", "/cache/x": "rw",
		"/var/root/x": "r", "/root/.pyenv/versions/3.11.7/bin/python": "r", "/root/.ssh": "-", "/run/clove/agent.sock": "r"})
}

func TestLookAtACallersRoot(t *testing.T) {
	t.Parallel()
	cfg := fixedConfig()
	cfg.Rootfs = "/srv/root"
	looks(t, "rootfs", cfg, map[string]string{"/usr/x": "r", "/root/x": "r", "/tmp/x": "rw", "/var/tmp/x": "rw", "/home/agent/x": "rw", "/workspace": "rw", "/etc/hosts": "r"})
	cfg.AgentUID, cfg.AgentGID = 0, 0
	looks(t, "rootfs of root", cfg, map[string]string{"/usr/x": "rw"})
}

func TestLookRefuses(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"", "tmp", "/tmp/", "/a/../b", "/a\x00b"} {
		if _, err := fixedConfig().Look(at); err == nil || !strings.Contains(err.Error(), "clean absolute") {
			t.Errorf("%q: %v", at, err)
		}
	}
	if _, err := (Config{}).Look("/"); err == nil {
		t.Error("a configuration without an id has a root")
	}
}
