package main

import (
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestFileFlags(t *testing.T) {
	const dir = "DIR" // stands for the bench's directory
	for _, c := range []struct {
		line string
		want agent.Files
	}{
		{"", agent.Files{}},
		{"--read-only", agent.Files{ReadOnly: true}},
		{"--workspace folder", agent.Files{Workspace: dir + "/folder"}},
		{"--workspace link", agent.Files{Workspace: dir + "/folder"}},
		{"--rootfs folder", agent.Files{Rootfs: dir + "/folder"}},
		{"-v ./folder:/data", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder", Target: "/data"}}}},
		{"-v folder/file:/data:z", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder/file", Target: "/data"}}}},
		{"-v folder/file:/data:ro,Z", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder/file", Target: "/data", ReadOnly: true}}}},
		{"-v folder/file:/data//x/:ro", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder/file", Target: "/data/x", ReadOnly: true}}}},
		{"-v ./link:/a:rw -v ./folder:/b", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder", Target: "/a"}, {Source: dir + "/folder", Target: "/b"}}}},
		{"-v ./folder:/workspace", agent.Files{Binds: []agent.Bind{{Source: dir + "/folder", Target: "/workspace"}}}},
		{"--tmpfs /run", agent.Files{Tmpfs: []agent.Tmpfs{{Target: "/run"}}}},
		{"--tmpfs /run:rw,nosuid,size=64K,mode=0700", agent.Files{Tmpfs: []agent.Tmpfs{{Target: "/run", SizeBytes: 65536, Mode: 0o700}}}},
	} {
		b := newBench(t)
		b.file("folder/file", "", 0o644)
		b.link("folder", "link")
		got := b.spec(append(strings.Fields(c.line), "--", "true")...).Files
		if shown := relocate(got, b.host.Dir, dir); !reflect.DeepEqual(shown, c.want) {
			t.Errorf("%q:\n%+v, want\n%+v", c.line, shown, c.want)
		}
	}
}

// relocate replaces the bench's directory, so that a table can name paths.
func relocate(f agent.Files, from, to string) agent.Files {
	f.Workspace = strings.Replace(f.Workspace, from, to, 1)
	f.Rootfs = strings.Replace(f.Rootfs, from, to, 1)
	for i := range f.Prefixes {
		f.Prefixes[i] = strings.Replace(f.Prefixes[i], from, to, 1)
	}
	for i := range f.Binds {
		f.Binds[i].Source = strings.Replace(f.Binds[i].Source, from, to, 1)
		f.Binds[i].Target = strings.Replace(f.Binds[i].Target, from, to, 1)
	}
	return f
}

func TestWorkdir(t *testing.T) {
	if got := newBench(t).spec("-w", "/data/./x/", "--", "true").Dir; got != "/data/x" {
		t.Errorf("got %s", got)
	}
	if got := newBench(t).spec("--", "true").Dir; got != agent.WorkspaceDir {
		t.Errorf("got %s", got)
	}
}
