//go:build root

package rootfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatWasSeenAsAList: of what was executed and mapped, a list names the programs, and the
// libraries that none of them is linked with.
func TestWhatWasSeenAsAList(t *testing.T) {
	b := newBench(t)
	tools := b.mkdir("tools", map[string]string{"script": "#!/bin/sh\n", "byenv": "#!/usr/bin/env nosuch\n", "text": "text\n"})
	library := func(name string) string {
		found, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + name)
		if len(found) == 0 {
			t.Fatalf("this machine has no %s", name)
		}
		real, err := filepath.EvalSymlinks(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return real
	}
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	c, alone := library("libc.so.6"), library("libBrokenLocale.so.1")
	for name, row := range map[string]struct {
		executed, mapped []string
		list             []string // of the run
		change           func(*Config)
		want             []string
		refused, used    []string
	}{
		"a program":                      {executed: []string{"/usr/bin/id", sh}, mapped: []string{c}, want: []string{sh, "/usr/bin/id"}},
		"its loader":                     {executed: []string{sh, library("ld-linux-*.so.?")}, want: []string{sh}},
		"a library alone":                {executed: []string{sh}, mapped: []string{alone, c}, want: []string{sh, alone}},
		"a script":                       {executed: []string{"/tools/script", sh}, want: []string{"/tools/script", sh}},
		"a script without its shell":     {executed: []string{"/tools/script"}, want: []string{"/tools/script"}, refused: []string{"/tools/script its interpreter /bin/sh is not in the list"}},
		"a text":                         {executed: []string{"/tools/text", sh}, want: []string{"/tools/text", sh}, refused: []string{"/tools/text it is no program of this machine"}},
		"a file that is gone":            {executed: []string{"/tools/gone", sh}, want: []string{"/tools/gone", sh}, refused: []string{"/tools/gone it does not exist inside"}},
		"one that the agent made":        {executed: []string{"/workspace/a.out"}, want: []string{"/workspace/a.out"}, refused: []string{"/workspace/a.out it does not exist inside"}},
		"one in memory":                  {mapped: []string{"/memfd:x (deleted)"}, want: []string{"/memfd:x (deleted)"}, refused: []string{"/memfd:x (deleted) it does not exist inside"}},
		"a writable volume":              {executed: []string{"/tools/script", sh}, change: func(c *Config) { c.Binds[0].ReadOnly = false }, want: []string{"/tools/script", sh}, refused: []string{"/tools/script the agent can write there, and so execute what it likes"}},
		"of a workspace":                 {executed: []string{"/workspace/script", sh}, change: func(c *Config) { c.Workspace = tools }, want: []string{sh, "/workspace/script"}},
		"the run's own list":             {executed: []string{sh}, mapped: []string{c}, list: []string{"/bin/sh", "/usr/bin/id"}, want: []string{sh}, used: []string{"/bin/sh"}},
		"what the run's list refused":    {executed: []string{sh}, mapped: []string{alone}, list: []string{"/bin/sh"}, want: []string{sh}, used: []string{"/bin/sh"}},
		"a folder of the run's own list": {executed: []string{sh, "/tools/script"}, list: []string{"/bin/sh", "/tools"}, want: []string{"/tools/script", sh}, used: []string{"/bin/sh", "/tools"}},
	} {
		cfg := testConfig(b.dir)
		cfg.Binds = []Bind{{Source: tools, Target: "/tools", ReadOnly: true}}
		if cfg.ReadOnly, cfg.Execute = row.list != nil, row.list; row.change != nil {
			row.change(&cfg)
		}
		plan, err := NewPlan(cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen, err := plan.Seen(row.executed, row.mapped)
		var refused []string
		for _, at := range slices.Sorted(maps.Keys(seen.Refused)) {
			refused = append(refused, at+" "+seen.Refused[at])
		}
		if err != nil || !slices.Equal(seen.Programs, row.want) || !slices.Equal(refused, row.refused) || !slices.Equal(seen.Used, row.used) {
			t.Errorf("%s: %v %q %q %q", name, err, seen.Programs, refused, seen.Used)
		}
	}
}

// TestWhatWasSeenIsMounted: a list of what Seen names is one that a root can be made with.
func TestWhatWasSeenIsMounted(t *testing.T) {
	b := newBench(t)
	plan, err := NewPlan(testConfig(b.dir))
	if err != nil {
		t.Fatal(err)
	}
	python, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	modules, _ := filepath.Glob(filepath.Join("/usr/lib", filepath.Base(python), "lib-dynload/*.so"))
	seen, err := plan.Seen([]string{python}, modules)
	if err != nil || !slices.Equal(seen.Programs, []string{python}) || len(modules) == 0 {
		t.Fatalf("%v %q of %d modules", err, seen.Programs, len(modules))
	}
	tree := b.mount(b.listed(append(seen.Programs, "/bin/sh")...))
	b.must(tree, sandboxRoot, "python3 -c 'import ctypes, hashlib'")
	if _, err := os.Stat("/usr/bin/shred"); err == nil {
		b.refused(tree, sandboxRoot, "shred --version", "Permission denied")
	}
	if strings.Contains(plan.String(), "execution") {
		t.Error("the run's own plan has changed")
	}
}
