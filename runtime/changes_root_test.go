//go:build root

package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// copyChanges returns what an archive of a run's changes has by name, and what it says of it.
func copyChanges(t *testing.T, r *Runtime, reading Reading) (map[string]entry, Copied) {
	t.Helper()
	var archive bytes.Buffer
	copied, err := r.CopyChanges(context.Background(), reading, &archive)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]entry{}
	for reader := tar.NewReader(&archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found, copied
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(io.LimitReader(reader, 1<<20))
		found[h.Name] = entry{*h, string(text)}
	}
}

// A hostile agent's changes are copied as they are, also while it lives: nothing outside is read, and
// what is left out is named.
func TestChangesOfAHostileAgent(t *testing.T) {
	secret := secretFile(t)
	workspace := t.TempDir()
	for _, name := range []string{"same", "gone", "changed", "dir/in"} {
		path := filepath.Join(workspace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("host's"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	r := newRuntime(t)
	a := startLiveIn(t, r, `cd /workspace; printf "host's" > same; rm gone; echo x > changed; mkdir -p new/deep; echo y > new/deep/file; mv dir other
		ln -s `+secret+` link; ln -s /var/tmp folder; mkfifo pipe; echo z > "new/two
lines"; echo set > new/setid; chmod 6755 new/setid; ln new/setid new/hard; echo no > new/closed; chmod 0 new/closed; truncate -s 8M new/holes; truncate -s 2T new/many
		d=new; i=0; while [ $i -lt 300 ]; do d=$d/n; i=$((i+1)); done; mkdir -p $d
		mkdir -p /var/tmp; echo home > /var/tmp/mine; echo ready; exec sleep 1000`, func(s *agent.Spec) { s.Files.Workspace = workspace })
	a.line()
	run, err := r.Get(string(a.s.spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	check := func(reading Reading) {
		t.Helper()
		found, copied := copyChanges(t, r, reading)
		for name, text := range map[string]string{"workspace/changed": "x\n", "workspace/new/deep/file": "y\n", "workspace/new/two\nlines": "z\n",
			"workspace/new/setid": "set\n", "workspace/new/hard": "set\n", "var/tmp/mine": "home\n"} {
			if found[name].text != text {
				t.Errorf("%q has %q", name, found[name].text)
			}
		}
		if h := found["workspace/new/setid"]; h.Mode != 0o755 {
			t.Errorf("the mode is %o", h.Mode)
		}
		if found["workspace/link"].Linkname != secret || found["workspace/folder"].Linkname != "/var/tmp" {
			t.Errorf("links: %+v, %+v", found["workspace/link"], found["workspace/folder"])
		}
		for _, name := range []string{"workspace/same", "workspace/gone", "workspace/pipe", "workspace/new/many", "workspace/new/closed", "workspace/dir/in", "workspace/other/in"} {
			if _, there := found[name]; there {
				t.Errorf("%s is copied", name)
			}
		}
		for name, e := range found {
			if strings.Contains(e.text, "secret") || strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
				t.Errorf("%q: %q", name, e.text)
			}
		}
		for path, why := range map[string]string{"/workspace/gone": "it was deleted", "/workspace/pipe": "it is a pipe", "/workspace/new/closed": "permission denied",
			"/workspace/new/many": "it has too many holes"} {
			if !slices.Contains(copied.Left, Left{path, why}) {
				t.Errorf("%s is not left out: %v", path, copied.Left)
			}
		}
		if copied.Missing != len(copied.Left) || copied.Files < 8 || copied.Bytes < 8<<20 {
			t.Errorf("%+v", copied)
		}
		chosen := reading
		chosen.Paths = []string{"/workspace/new/deep"}
		if found, _ := copyChanges(t, r, chosen); len(found) != 3 { // with the folder above
			t.Errorf("of one path: %v", found)
		}
	}
	err = a.Layer(context.Background(), func(_ context.Context, layer *os.File) error {
		check(Reading{Run: run, Live: layer})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(0); err != nil {
		t.Fatal(err)
	}
	a.ends()
	if run, err = r.Get(string(run.Spec.ID)); err != nil || run.Layer == "" {
		t.Fatalf("no layer is kept: %v", err)
	}
	check(Reading{Run: run})
	if err := r.Remove(string(run.Spec.ID)); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAnAgentMayNotReadIsNotCollected: chmod(2) copies a file into the layer that its list of what may
// be read does not have. The control is the same file without a list.
func TestWhatAnAgentMayNotReadIsNotCollected(t *testing.T) {
	workspace := t.TempDir()
	closed := filepath.Join(workspace, "closed")
	if err := errors.Join(os.WriteFile(closed, []byte("closed text"), 0o644), os.Mkdir(filepath.Join(workspace, "open"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string][]string{"control": nil, "list": {"/usr", "/bin", "/lib", "/lib64", "/etc", "/workspace/open"}} {
		r := newRuntime(t)
		a := startLiveIn(t, r, `chmod 600 /workspace/closed; echo x > /workspace/open/x; echo ready; exec sleep 1000`, func(s *agent.Spec) {
			s.Files.Workspace, s.Dir, s.Files.Read = workspace, "/tmp", read
		})
		a.line()
		run, err := r.Get(string(a.s.spec.ID))
		if err != nil {
			t.Fatal(err)
		}
		err = a.Layer(context.Background(), func(_ context.Context, layer *os.File) error {
			found, copied := copyChanges(t, r, Reading{Run: run, Live: layer})
			_, there := found["workspace/closed"]
			if there != (read == nil) || found["workspace/open/x"].text != "x\n" {
				t.Errorf("%s: %v, left %v", name, found, copied.Left)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
