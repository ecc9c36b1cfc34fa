package rootfs

import (
	"slices"
	"testing"
)

func TestWhereAnAgentWrites(t *testing.T) {
	t.Parallel()
	own := []string{"/home/agent", "/run/lock", "/tmp", "/var/tmp", "/workspace"}
	for name, row := range map[string]struct {
		change func(*Config, *hostInfo)
		want   []string
	}{
		// Files of the base may be everybody's.
		"its user": {func(*Config, *hostInfo) {}, slices.Sorted(slices.Values(append([]string{"/opt", "/usr"}, own...)))},
		"root":     {func(c *Config, _ *hostInfo) { c.AgentUID, c.AgentGID = 0, 0 }, []string{"/"}},
		"a caller's root": {func(c *Config, f *hostInfo) { c.Rootfs, f.Rootfs = "/r", source{Path: "/r", Dir: true} },
			[]string{"/"}},
		"a file of everybody's": {func(_ *Config, f *hostInfo) {
			f.Base, f.Etc = nil, []entry{{Path: "/etc/open", Kind: kindFile, Mode: 0o666}, {Path: "/etc/link", Kind: kindLink, Data: "open"}}
		}, append([]string{"/etc/open"}, own...)},
		"mounts": {func(c *Config, f *hostInfo) {
			f.Base = nil
			c.Binds = []Bind{{Target: "/data"}, {Target: "/shown", ReadOnly: true}, {Target: "/workspace/in"}, {Target: "/data/shown", ReadOnly: true}}
			f.Binds = []source{{Path: "/a", Dir: true}, {Path: "/b", Dir: true}, {Path: "/c", Dir: true}, {Path: "/d", Dir: true}}
			f.Prefixes = []source{{Path: "/root/.pyenv", Dir: true}}
		}, append([]string{"/data"}, own...)},
		"a read-only root": {func(c *Config, _ *hostInfo) { c.ReadOnly = true }, []string{"/home/agent", "/tmp", "/var/tmp", "/workspace"}},
		"a read-only root of root's": {func(c *Config, _ *hostInfo) { c.ReadOnly, c.AgentUID, c.AgentGID = true, 0, 0 },
			[]string{"/home/agent", "/tmp", "/var/tmp", "/workspace"}},
		"a list": {func(c *Config, f *hostInfo) {
			c.ReadOnly, c.Writable, c.Tmpfs = true, []string{"/tmp"}, []Tmpfs{{Target: "/usr/cache", SizeBytes: 1}}
			f.Workspace = source{Path: "/job", Dir: true}
		}, []string{"/tmp", "/usr/cache"}},
		"a workspace beneath a closed one": {func(c *Config, f *hostInfo) {
			c.ReadOnly, c.Writable = true, []string{"/workspace"}
			f.Workspace = source{Path: "/job", Dir: true}
		}, []string{"/workspace"}},
	} {
		cfg, f := fixedConfig(), testFacts()
		row.change(&cfg, &f)
		got := planFor(cfg, f).Writable()
		if slices.Sort(got); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestOutermost(t *testing.T) {
	t.Parallel()
	if got := outermost([]string{"/b", "/a/x/y", "/ab", "/a", "/a/z"}); !slices.Equal(got, []string{"/a", "/ab", "/b"}) {
		t.Errorf("%q", got)
	}
}
