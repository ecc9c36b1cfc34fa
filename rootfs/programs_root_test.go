//go:build root

package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/nsthread"
)

// listed is a configuration with a list of programs.
func (b *bench) listed(list ...string) Config {
	cfg := testConfig(b.dir)
	cfg.ReadOnly, cfg.Execute = true, list
	return cfg
}

// TestTheListsMountsAreLocked: a process with all capabilities in the sandbox's user namespace
// makes a mount namespace of its own, in which it may mount. It cannot take noexec from a mount
// that is there, and finds nothing below the mount of a program. That what it mounts itself
// can be executed is why the filter must refuse it namespaces.
func TestTheListsMountsAreLocked(t *testing.T) {
	b := newBench(t)
	tree := b.mount(b.listed("/bin/sh", "/usr/bin/unshare", "/usr/bin/mount", "/usr/bin/umount", "/usr/bin/cp", "/usr/bin/id", "/usr/bin/python3"))
	b.must(tree, sandboxRoot, "cp /usr/bin/env /tmp/env && cp /usr/bin/env /workspace/env")
	own := func(script string) string { return "unshare -m sh -c '" + script + "'" }
	b.must(tree, sandboxRoot, own("id && mount -t tmpfs none /workspace && cp /usr/bin/env /workspace/env && /workspace/env id")) // the control
	b.refused(tree, sandboxRoot, own("/tmp/env"), "Permission denied")
	for _, dir := range []string{"/", "/tmp", "/usr", "/workspace"} {
		b.refused(tree, sandboxRoot, own("mount -o remount,bind,exec "+dir), "permission denied")
	}
	b.refused(tree, sandboxRoot, own("mount --bind /tmp /workspace && /workspace/env"), "Permission denied")
	// The programs mount(8) and umount(8) want a /proc for the mount of a file.
	call := func(text string) string {
		return own(`python3 -c "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); l.` + text + ` and exit(os.strerror(ctypes.get_errno()))"`)
	}
	b.must(tree, sandboxRoot, call(`mount(b\"none\", b\"/workspace\", b\"tmpfs\", 0, None)`))                          // the control
	b.refused(tree, sandboxRoot, call(`mount(None, b\"/usr/bin/id\", None, 0x1020, None)`), "Operation not permitted") // MS_REMOUNT|MS_BIND, and not read-only
	b.refused(tree, sandboxRoot, call(`umount2(b\"/usr/bin/id\", 2)`), "Invalid argument")                             // MNT_DETACH: it is locked
}

// TestWhatAListRefuses: each has one clear reason and a hint, and nothing is mounted.
func TestWhatAListRefuses(t *testing.T) {
	b := newBench(t)
	tools := b.mkdir("tools", map[string]string{"script": "#!/usr/bin/nosuch\n", "byenv": "#!/usr/bin/env id\n", "text": "text\n", "loop/x": ""})
	if err := os.Symlink("self", filepath.Join(tools, "self")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/id", filepath.Join(tools, "link")); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		list   []string
		change func(*Config)
		want   string // empty: it is mounted
	}{
		"a program":                  {list: []string{"/usr/bin/id"}},
		"a link to one":              {list: []string{"/tools/link"}},
		"a folder":                   {list: []string{"/tools"}},
		"no file":                    {list: []string{"/usr/bin/nosuch"}, want: "does not exist"},
		"below a file":               {list: []string{"/usr/bin/id/x"}, want: "does not exist"},
		"no match":                   {list: []string{"/usr/bin/nosuch*"}, want: "nothing inside has such a name"},
		"a text":                     {list: []string{"/tools/text"}, want: "no program of this machine"},
		"a loop of links":            {list: []string{"/tools/self"}, want: "too many links"},
		"a file of clove's":          {list: []string{"/etc/passwd"}, want: "no program of this machine"},
		"a script":                   {list: []string{"/tools/script"}, want: "its interpreter /usr/bin/nosuch is not in the list"},
		"a script by env":            {list: []string{"/tools/byenv", "/usr/bin/env"}, change: func(c *Config) { c.Command.Path = []string{"/usr/bin"} }, want: "id is not in the list"},
		"a script by env, with it":   {list: []string{"/tools/byenv", "/usr/bin/env", "/usr/bin/id"}},
		"the whole base":             {list: []string{"/usr"}, want: "more than"},
		"a writable place":           {list: []string{"/workspace/tool"}, want: "the agent can write there"},
		"one as a folder":            {list: []string{"/tmp"}, want: "the agent can write there"},
		"one inside a folder":        {list: []string{"/home"}, want: "the agent can write to /home/agent"},
		"a workspace that is sealed": {list: []string{"/workspace/loop"}, change: func(c *Config) { c.Workspace, c.Writable = tools, []string{"/tmp"} }},
		"a writable volume":          {list: []string{"/tools/link"}, change: func(c *Config) { c.Binds[0].ReadOnly = false }, want: "the agent can write there"},
		"the volume's other side":    {list: []string{"/tools/loop"}, change: func(c *Config) { c.Binds = append(c.Binds, Bind{Source: tools, Target: "/rw"}) }, want: "which the agent changes at /rw"},
		"a part of it":               {list: []string{"/tools"}, change: func(c *Config) { c.Binds = append(c.Binds, Bind{Source: tools + "/loop", Target: "/rw"}) }, want: "which the agent changes at /rw"},
		"a part of the base":         {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Binds = append(c.Binds, Bind{Source: "/usr/bin", Target: "/rw"}) }, want: "which the agent changes at /rw"},
		"another part of the base":   {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Binds = append(c.Binds, Bind{Source: "/usr/share/doc", Target: "/rw"}) }},
		"memory over it":             {list: []string{"/tools/link"}, change: func(c *Config) { c.Tmpfs = []Tmpfs{{Target: "/tools", SizeBytes: 4096}}; c.Binds = nil }, want: "the agent can write there"},
		"the command":                {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Command = Command{Name: "/usr/bin/env"} }, want: "it is not in the list"},
		"the command by its name":    {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Command = Command{Name: "env", Path: []string{"/usr/local/bin", "/usr/bin"}} }, want: "it is not in the list"},
		"the command, listed":        {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Command = Command{Name: "id", Path: []string{"/usr/local/bin", "/usr/bin"}} }},
		"the command from there":     {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Command = Command{Name: "bin/env", Dir: "/usr"} }, want: "it is not in the list"},
		"the command, written":       {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Workspace, c.Command = tools, Command{Name: "/workspace/text"} }, want: "the agent can write there"},
		"a command that is nowhere":  {list: []string{"/usr/bin/id"}, change: func(c *Config) { c.Command = Command{Name: "nosuch", Path: []string{"/usr/bin"}} }},
	} {
		cfg := b.listed(row.list...)
		cfg.Binds = []Bind{{Source: tools, Target: "/tools", ReadOnly: true}}
		if row.change != nil {
			row.change(&cfg)
		}
		tree, err := b.tryMount(cfg)
		if err == nil {
			b.do(tree.Discard)
		}
		var list *ListError
		if (err == nil) != (row.want == "") || err != nil && (!errors.As(err, &list) || !strings.Contains(err.Error(), row.want) || list.Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAListIsReadWithTheUsersRights: a list of a member's shows nothing of files that the
// member may not read. The control is root's list.
func TestAListIsReadWithTheUsersRights(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("mine", nil)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("#!/usr/bin/of-root\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := b.listed("/mine/secret")
	cfg.Binds = []Bind{{Source: dir, Target: "/mine", ReadOnly: true}}
	if _, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), "of-root") {
		t.Errorf("control: %v", err)
	}
	cfg.User = &nsthread.Identity{UID: 12345, GID: 12345}
	if _, err := b.tryMount(cfg); err == nil || strings.Contains(err.Error(), "of-root") {
		t.Errorf("%v", err)
	}
}

// TestAListInARootOfTheCallers: links of the root are followed inside, and the loader's cache is
// the root's own.
func TestAListInARootOfTheCallers(t *testing.T) {
	b := newBench(t)
	cfg := b.smallRoot(nil)
	cfg.ReadOnly = true
	cfg.Execute = []string{"/bin/sh"}
	tree, err := b.tryMount(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if out := b.must(tree, sandboxAgent, "echo it runs"); out != "it runs\n" {
		t.Errorf("%q", out)
	}
	b.refused(tree, sandboxAgent, "/usr/bin/id", "Permission denied")
	b.do(tree.Discard)
	if err := os.Symlink("/../../../../usr/bin/id", filepath.Join(cfg.Rootfs, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/../../../../etc/shadow", filepath.Join(cfg.Rootfs, "shadow")); err != nil {
		t.Fatal(err)
	}
	cfg.Execute = []string{"/bin/sh", "/out"} // /usr is bound, so the link leads to its file inside
	plan, err := NewPlan(cfg)
	if err != nil || !strings.Contains(plan.String(), "execution of /usr/bin/id\n") {
		t.Errorf("%v\n%s", err, plan)
	}
	cfg.Execute = []string{"/bin/sh", "/shadow"}
	if _, err := NewPlan(cfg); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a link leads out: %v", err)
	}
}

// TestModulesComeWithTheirInterpreter: the libraries that modules are linked with, too.
func TestModulesComeWithTheirInterpreter(t *testing.T) {
	b := newBench(t)
	plan, err := NewPlan(b.listed("/usr/bin/python3"))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	files := 0
	for _, e := range plan.hostInfo.Execute {
		if e.Dir {
			dirs = append(dirs, e.Path)
		} else {
			files++
		}
	}
	if !slices.ContainsFunc(dirs, func(d string) bool { return strings.HasSuffix(d, "/lib-dynload") }) || files < 5 {
		t.Errorf("%q, %d files", dirs, files)
	}
	text := plan.String()
	if !strings.Contains(text, "no execution\n") || !strings.Contains(text, "libssl") {
		t.Error(text)
	}
}

// TestAKeptLayerKeepsItsList: the next start has the same mounts, and what the agent wrote at the
// last one is no program.
func TestAKeptLayerKeepsItsList(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	cfg.ReadOnly, cfg.Execute = true, []string{"/bin/sh", "/usr/bin/cp"}
	for range 2 {
		tree, err := b.again(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.must(tree, sandboxAgent, "cp /usr/bin/env /workspace/env")
		for _, program := range []string{"/workspace/env", "/usr/bin/env"} {
			b.refused(tree, sandboxAgent, program, "Permission denied")
		}
		b.do(tree.Close)
	}
	b.do(func() error { return RemoveLayer(filepath.Join(cfg.StateDir, "layers", cfg.ID+".img")) })
}
