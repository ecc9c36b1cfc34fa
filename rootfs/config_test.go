package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testConfig is a valid request, which each test changes.
func testConfig(dir string) Config {
	return Config{
		ID: "0123456789abcdef", HostID: testHostID, AgentUID: 1000, AgentGID: 1000, Hostname: "box",
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		DiskBytes: 64 << 20, MemoryBytes: 256 << 20,
	}
}

func TestNewPlanRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"state/layers", "run", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "toetc")); err != nil {
		t.Fatal(err)
	}
	bind := func(source, target string) func(*Config) {
		return func(c *Config) { c.Binds = append(c.Binds, Bind{Source: source, Target: target}) }
	}
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"an id that is a path", func(c *Config) { c.ID = "../x" }, "is not an id"},
		{"the host's ids", func(c *Config) { c.HostID = 0 }, "belongs to the host"},
		{"ids beyond the end", func(c *Config) { c.HostID = 0xFFFF8000 }, "no 65536 host ids"},
		{"clove-init's id", func(c *Config) { c.AgentUID = 65533 }, "beyond 65532"},
		{"a tiny disk", func(c *Config) { c.DiskBytes = 4096 }, "too small"},
		{"writable places of a writable root", func(c *Config) { c.Writable = []string{"/tmp"} }, "only a read-only one"},
		{"a relative state", func(c *Config) { c.StateDir = "state" }, "clean absolute"},
		{"a missing workspace", func(c *Config) { c.Workspace = dir + "/none" }, "no such file"},
		{"a file as workspace", func(c *Config) { c.Workspace = dir + "/file" }, "not a directory"},
		{"the host as workspace", func(c *Config) { c.Workspace = "/" }, "the whole host"},
		{"the host by another name", func(c *Config) { c.Workspace = "/etc/.." }, "the whole host"},
		{"a system directory", func(c *Config) { c.Workspace = "/usr" }, "directory of the system"},
		{"a link to a system directory", func(c *Config) { c.Workspace = dir + "/toetc" }, "directory of the system"},
		{"clove's state as workspace", func(c *Config) { c.Workspace = dir + "/state" }, "clove's own directory"},
		{"inside clove's state", func(c *Config) { c.Workspace = dir + "/state/layers" }, "clove's own directory"},
		{"around clove's state", func(c *Config) { c.Workspace = dir }, "clove's own directory"},
		{"around clove's run directory", bind(dir, "/data"), "clove's own directory"},
		{"a rootfs that holds clove's state", func(c *Config) { c.Rootfs = dir }, "clove's own directory"},
		{"a prefix in proc", func(c *Config) { c.Prefixes = []string{"/proc/self"} }, "the kernel's"},
		{"a bind of a device", bind("/dev/null", "/data"), "the kernel's"},
		{"a relative source", bind("work", "/data"), "not an absolute path"},
		{"a relative target", bind(dir+"/work", "data"), "not a clean absolute path"},
		{"a target with dots", bind(dir+"/work", "/data/../etc"), "not a clean absolute path"},
		{"a target with a NUL", bind(dir+"/work", "/da\x00ta"), "not a clean absolute path"},
		{"the root as target", bind(dir+"/work", "/"), "cannot mount at /:"},
		{"a target in proc", bind(dir+"/work", "/proc/sys"), "is the kernel's"},
		{"sys as target", bind(dir+"/work", "/sys"), "is the kernel's"},
		{"a target in dev", bind(dir+"/work", "/dev/shm"), "is the kernel's"},
		{"one target twice", func(c *Config) {
			bind(dir+"/work", "/data")(c)
			c.Tmpfs = []Tmpfs{{Target: "/data"}}
		}, "two things at /data"},
		{"a tmpfs of negative size", func(c *Config) { c.Tmpfs = []Tmpfs{{Target: "/t", SizeBytes: -1}} }, "out of range"},
		{"a tmpfs without bound", func(c *Config) { c.MemoryBytes, c.Tmpfs = 0, []Tmpfs{{Target: "/t"}} }, "no memory limit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := testConfig(dir)
			cfg.Workspace = dir + "/work"
			if _, err := NewPlan(cfg); err != nil {
				t.Fatalf("control: the unchanged request is refused: %v", err)
			}
			test.change(&cfg)
			if _, err := NewPlan(cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := NewPlan(testConfig(dir)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("planning made %v (%v)", entries, err)
	}
}
