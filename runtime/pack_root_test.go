//go:build root

package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// pack returns the archive of a path of the agent's.
func (a *liveAgent) pack(path, as string) ([]byte, error) {
	a.t.Helper()
	var archive bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	err := a.Pack(ctx, path, "", as, &archive)
	return archive.Bytes(), err
}

func (a *liveAgent) unpack(path string, archive io.Reader) error {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return a.Unpack(ctx, path, archive)
}

// startGiven starts an agent that is given archives.
func startGiven(t *testing.T, script string, change func(*agent.Spec), archives ...[]byte) *liveAgent {
	t.Helper()
	r := newRuntime(t)
	return startLiveIn(t, r, script, func(s *agent.Spec) {
		for n, archive := range archives {
			name, err := r.paths.Spools().New(s.ID, n)
			if err == nil {
				err = os.WriteFile(name, archive, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if change != nil {
			change(s)
		}
	})
}

// A child has what its parent gave it before its first instruction, as its own files.
func TestFilesAreGivenBeforeTheAgentExecutes(t *testing.T) {
	parent := startLive(t, `cd /workspace; mkdir -p d/e; echo one > d/one; echo two > "d/e/two
lines"; ln -s one d/link; ln d/one d/hard; chmod 6751 d/one; truncate -s 8G d/sparse; echo ready; exec sleep 1000`, nil)
	parent.line()
	folder, err := parent.pack("/workspace/d", "/workspace/in/deep/d")
	if err != nil {
		t.Fatal(err)
	}
	single, err := parent.pack("/workspace/d/one", "/workspace/renamed")
	if err != nil {
		t.Fatal(err)
	}
	child := startGiven(t, `cd /workspace; stat -c '%n %a %u %g' renamed in in/deep in/deep/d/one in/deep/d/hard
		stat -c %s in/deep/d/sparse; du -k in/deep/d/sparse | cut -f1
		cat renamed in/deep/d/link "in/deep/d/e/two
lines"; echo done; exec sleep 1000`, nil, folder, single)
	var got []string
	for line := child.line(); line != "done"; line = child.line() {
		got = append(got, line)
	}
	want := `renamed 751 1000 1000
in 755 1000 1000
in/deep 755 1000 1000
in/deep/d/one 751 1000 1000
in/deep/d/hard 751 1000 1000
8589934592
0
one
one
two`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got %s", text)
	}
	if left := entriesOf(string(child.s.paths.Spools())); len(left) != 0 {
		t.Errorf("spools are left: %q", left)
	}
}

// TestWhatCannotBeGivenIsRefused: nothing is left out silently. The control is that without it the
// same folder is given.
func TestWhatCannotBeGivenIsRefused(t *testing.T) {
	a := startLive(t, `cd /workspace; mkdir good pipe closed; echo x > good/x; mkfifo pipe/p; echo x > closed/x; chmod 0 closed/x
		truncate -s 2T holes; echo ready; exec sleep 1000`, nil)
	a.line()
	if _, err := a.pack("/workspace/good", "/workspace/in"); err != nil {
		t.Errorf("control: %v", err)
	}
	for _, name := range []string{"pipe", "closed", "none", "holes", "good/../../proc/1/environ"} {
		if _, err := a.pack("/workspace/"+name, "/workspace/in"); err == nil {
			t.Errorf("%s is given", name)
		}
	}
	for _, as := range []string{"", "/", "in", "/workspace/../x", "/workspace/", "../x"} {
		if _, err := a.pack("/workspace/good", as); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("as %q: %v", as, err)
		}
	}
}

// TestAnAgentGivesOnlyWhatItMayRead: the list of what may be read holds for copies in its name. The
// control is a copy that its owner asks for.
func TestAnAgentGivesOnlyWhatItMayRead(t *testing.T) {
	workspace := t.TempDir()
	for _, name := range []string{"open", "closed"} {
		if err := os.Mkdir(filepath.Join(workspace, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(workspace, name, "x"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := startLive(t, `cat /workspace/closed/x 2>/dev/null && echo control; ln -s /workspace/closed/x /tmp/link; echo ready; exec sleep 1000`, func(s *agent.Spec) {
		s.Files.Workspace, s.Dir = workspace, "/tmp"
		s.Files.Read = []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/workspace/open"}
	})
	if line := a.line(); line != "ready" {
		t.Fatalf("the agent reads it: %q", line)
	}
	if got, err := a.copyOut("/workspace/closed/x"); err != nil || got["x"].text != "text" {
		t.Fatalf("control: %+v, %v", got, err)
	}
	if _, err := a.pack("/workspace/open", "/workspace/in"); err != nil {
		t.Errorf("what it may read: %v", err)
	}
	for _, path := range []string{"/workspace/closed", "/workspace/closed/x", "/workspace", "/tmp/link/../../workspace/closed/x"} {
		if archive, err := a.pack(path, "/workspace/in"); err == nil || bytes.Contains(archive, []byte("text")) && path != "/workspace" {
			t.Errorf("%s is given: %v", path, err)
		}
	}
}

// A folder is unpacked as a whole or not at all, in place of nothing or of an empty folder.
func TestUnpack(t *testing.T) {
	a := startLive(t, `cd /workspace; mkdir empty full; echo mine > full/mine; echo mine > file; ln -s /workspace link; echo ready; exec sleep 1000`,
		func(s *agent.Spec) { s.Limits.DiskBytes = 32 << 20 })
	a.line()
	tool := file("d/tool", "text")
	tool.Mode, tool.Uid = 0o6755, 0
	for _, path := range []string{"/workspace/empty", "/workspace/new", "/workspace/deep/er/new"} {
		if err := a.unpack(path, archive(t, tool)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := a.shell("cd " + path + " && stat -c '%n %a %u %g' . d d/tool"); got != ". 755 1000 1000\nd 755 1000 1000\nd/tool 755 1000 1000\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	for path, e := range map[string]entry{
		"/workspace/full":     tool,
		"/workspace/file":     tool,
		"/workspace/link":     tool,
		"/workspace/link/new": tool,
		"/workspace/file/new": tool,
		"/workspace":          tool,
		"/":                   tool,
		"/dev/shm/new":        tool,
		"/proc/new":           tool,
		"/workspace/a":        file("../x", ""),
		"/workspace/b":        file("/x", ""),
		"/workspace/c":        {tar.Header{Name: "x", Typeflag: tar.TypeChar}, ""},
		"/workspace/d":        {tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "file"}, ""},
		"/workspace/e":        {tar.Header{Name: "x", Typeflag: tar.TypeFifo}, ""},
		"/workspace/f":        file("big", strings.Repeat("x", 40<<20)),
	} {
		if err := a.unpack(path, archive(t, file("before", "x"), e)); err == nil {
			t.Errorf("%s, %s: unpacked", path, e.Name)
		}
	}
	if err := a.CopyIn(context.Background(), "/dev/shm", archive(t, file("x", ""))); err != nil {
		t.Errorf("control: its owner may copy into memory: %v", err)
	}
	if got := a.shell("cd /workspace; ls -A; cat full/mine file; ls -A full"); got != "deep\nempty\nfile\nfull\nlink\nnew\nmine\nmine\nmine\n" {
		t.Errorf("now there is %q", got)
	}
}

// TestUnpackWhileFoldersChange: the agent exchanges the folder above, and what is unpacked, for links to the
// outside as fast as it can.
func TestUnpackWhileFoldersChange(t *testing.T) {
	secret := secretFile(t)
	a := startLive(t, `cd /workspace; mkdir d; ln -s /var/tmp l; mkdir -p /var/tmp 2>/dev/null; echo ready
		while :; do
			mv -T d x && mv -T l d && mv -T d l && mv -T x d || { rm -rf d x l; mkdir d; ln -s /var/tmp l; }
			for t in d/.clove-*; do [ -d "$t" ] && rm -rf "$t" && ln -s /var/tmp "$t"; done
		done 2>/dev/null`, nil)
	a.line()
	before := entriesOf("/var/tmp")
	done := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); done++ {
		name := filepath.Base(secret)
		_ = a.unpack("/workspace/d/new", archive(t, file(name, "changed"), file("sub/"+name, "changed")))
		_ = a.unpack("/workspace/d", archive(t, file(name, "changed")))
		if archive, _ := a.pack("/workspace/d/"+name, "/x"); bytes.Contains(archive, []byte("secret")) {
			t.Fatal("the host's file came out")
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the host's file is %q, %v", text, err)
	}
	if after := entriesOf("/var/tmp"); len(after) != len(before) {
		t.Errorf("/var/tmp has %q and had %q", after, before)
	}
	t.Logf("%d rounds", done)
}

// TestAnArchiveThatDoesNotFit: the start fails with a reason, and nothing is on the host.
func TestAnArchiveThatDoesNotFit(t *testing.T) {
	r := newRuntime(t)
	for name, e := range map[string]entry{
		"too large":    file("workspace/big", strings.Repeat("x", 40<<20)),
		"leads out":    file("../../../../var/tmp/out", "x"),
		"through link": file("lib/x", "x"),
		"no rights":    file("etc/x", "x"),
		"in memory":    file("dev/shm/x", "x"),
		"a device":     {tar.Header{Name: "workspace/x", Typeflag: tar.TypeBlock}, ""},
	} {
		spec := sleeper()
		spec.Limits.DiskBytes = 32 << 20
		spool, err := r.paths.Spools().New(spec.ID, 0)
		if err == nil {
			err = os.WriteFile(spool, archive(t, e).Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		record, err := r.Run(context.Background(), spec, IO{Stderr: os.Stderr})
		if err != nil || record.Status != agent.StatusStartFailed || record.Error == nil || record.Error.Step != "copy" {
			t.Errorf("%s: %v, %+v", name, err, record.Error)
		}
		if !exists(spool) {
			t.Errorf("%s: a start that failed has no files the next time", name)
		}
		if err := r.Remove(string(spec.ID)); err != nil {
			t.Error(err)
		}
	}
	if left := entriesOf(string(r.paths.Spools())); len(left) != 0 {
		t.Errorf("spools are left: %q", left)
	}
	if exists("/var/tmp/out") {
		t.Error("an archive led out")
	}
	clean(t, r)
}
