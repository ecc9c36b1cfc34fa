package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// The whole root is copied into one new folder. No other existing name is touched.
func TestUnpackOnlyWhatWasAsked(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{os.MkdirAll(filepath.Join(dir, "source"), 0o755), os.Mkdir(filepath.Join(dir, "target"), 0o755),
		os.WriteFile(filepath.Join(dir, "source/mine"), []byte("agent"), 0o600), os.WriteFile(filepath.Join(dir, "target/mine"), []byte("safe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "target"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []struct {
		packed, inside string
		wanted         bool
	}{{".", "/", true}, {"other", "/asked", false}, {"askedtoo", "/asked", false}, {"asked", "/asked", true}} {
		var archive bytes.Buffer
		if err := pack(&archive, filepath.Join(dir, "source"), c.packed); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&archive, root, firstName(c.inside), "new"); (err == nil) != c.wanted {
			t.Errorf("%s: %v", c.packed, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "target/new/mine"))
		if (err == nil && string(text) == "agent") != c.wanted {
			t.Errorf("%s: %q, %v", c.packed, text, err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "target/new")); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "target/mine")); err != nil || string(text) != "safe" {
		t.Errorf("what was there says %q, %v", text, err)
	}
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]place{
		"box:/a": {"box", "/a"}, "./box:/a": {path: "./box:/a"}, "/x:y": {path: "/x:y"}, "-": {path: "-"}, ":/a": {path: ":/a"}, "box:": {"box", ""}, "1000/box:/a": {"1000/box", "/a"},
		"./1000/box:/a": {path: "./1000/box:/a"}, "1000/box:a": {path: "1000/box:a"}, "dir/box:/a": {path: "dir/box:/a"},
	} {
		if got := parsePlace(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// The content of an agent's archive stays in the target folder: no name, link or mode leads
// out of it.
func TestUnpackStaysBeneath(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	for _, err := range []error{os.MkdirAll(filepath.Join(source, "sub"), 0o755), os.Mkdir(target, 0o755), os.WriteFile(filepath.Join(source, "sub/f"), []byte("text"), 0o640),
		os.Symlink("..", filepath.Join(source, "up")), os.WriteFile(filepath.Join(dir, "victim"), []byte("safe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	if err := pack(&archive, source, "name"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := unpack(&archive, root, "name", "other"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(target, "other/sub/f")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	// Through the link that was unpacked before, and with "..".
	for _, name := range []string{"other/up/../../victim", "../victim", "other/up/../victim"} {
		archive.Reset()
		if err := pack(&archive, filepath.Join(source, "sub/f"), name); err != nil {
			t.Fatal(err)
		}
		_ = unpack(&archive, root, "x", "x")
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "victim")); string(text) != "safe" {
		t.Errorf("a file beside the target says %q", text)
	}
}

// A copy that had to leave something out writes the rest and fails: the archive ends before
// the sender reports it.
func TestCopyOutTellsWhatIsMissing(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	source := b.file("source/f", "text", 0o600)
	f.answers[methods.RunCopyOut.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		var archive bytes.Buffer
		err := pack(&archive, filepath.Dir(source), "out")
		if err == nil {
			err = c.Notify(api.NoteOutput, api.SessionOutput{Stream: api.StreamTar, Data: archive.Bytes()})
		}
		if err == nil {
			err = &agent.Error{Kind: agent.KindConflict, Message: "not everything was copied"}
		}
		return nil, err
	}
	target := filepath.Join(b.host.Dir, "target")
	status, _, stderr := b.clove("cp", "one:/out", target)
	text, err := os.ReadFile(filepath.Join(target, "f"))
	if status != exitFailed || !strings.Contains(stderr, "not everything") || err != nil || string(text) != "text" {
		t.Errorf("%d, %q, %q, %v", status, stderr, text, err)
	}
}

// An incomplete copy leaves nothing under the final name, and an existing file stays. The
// control is the complete copy.
func TestCopyOutIsWholeOrNothing(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	source := b.file("source/f", strings.Repeat("text", 4096), 0o600)
	cut := true
	f.answers[methods.RunCopyOut.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		var archive bytes.Buffer
		if err := pack(&archive, source, "f"); err != nil {
			return nil, err
		}
		data := archive.Bytes()
		if cut {
			data = data[:8192]
		}
		err := c.Notify(api.NoteOutput, api.SessionOutput{Stream: api.StreamTar, Data: data})
		if err == nil && cut {
			err = &agent.Error{Kind: agent.KindConflict, Message: "the agent has ended"}
		}
		return nil, err
	}
	dir := filepath.Join(b.host.Dir, "target")
	old := b.file("target/old", "old", 0o600)
	for _, cut = range []bool{true, false} {
		for _, target := range []string{filepath.Join(dir, "new"), old} {
			if status, _, stderr := b.clove("cp", "one:/f", target); (status == exitFailed) != cut {
				t.Errorf("cut %v: %d, %s", cut, status, stderr)
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "new"))
		if cut && !errors.Is(err, fs.ErrNotExist) || !cut && len(text) != 4*4096 {
			t.Errorf("cut %v: new has %d bytes, %v", cut, len(text), err)
		}
		if text, err := os.ReadFile(old); err != nil || cut != (string(text) == "old") {
			t.Errorf("cut %v: old has %d bytes, %v", cut, len(text), err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".clove-*")); len(left) > 0 {
			t.Errorf("cut %v: left %q", cut, left)
		}
	}
}

// A file replaces an empty directory, but no other one.
func TestAFileInPlaceOfADirectory(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.Mkdir("empty", 0o755), root.MkdirAll("full/x", 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"empty": true, "full": false} {
		err := replaceWhole(root, name, func(temporary string) error {
			return writeNew(strings.NewReader("text"), root, temporary, &tar.Header{}, 0o600)
		})
		if text, rerr := root.ReadFile(name); (err == nil) != want || (rerr == nil && string(text) == "text") != want {
			t.Errorf("%s: %v, %q, %v", name, err, text, rerr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".clove-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// If a source cannot be read, the error is about that, not about the end of the session that
// follows from it.
func TestCopyInTellsOfItsSource(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answers[methods.RunCopyIn.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		for {
			m, err := c.Receive()
			if err != nil || m.Method == api.NoteCloseInput {
				return api.Nothing{}, err
			}
		}
	}
	good := b.file("good", "text", 0o600)
	if status, _, stderr := b.clove("cp", good, "one:/tmp"); status != 0 {
		t.Errorf("%d, %s", status, stderr)
	}
	if err := unix.Mkfifo(filepath.Join(b.host.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := b.clove("cp", filepath.Join(b.host.Dir, "pipe"), "one:/tmp"); status != exitFailed || !strings.Contains(stderr, "neither a file nor") {
		t.Errorf("%d, %s", status, stderr)
	}
}

// All that cannot be packed is reported in one error, and a file's time keeps its fraction of
// a second.
func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	modified := time.Unix(1_700_000_000, 999_999_999)
	for _, err := range []error{os.WriteFile(file, []byte("text"), 0o600), os.Chtimes(file, modified, modified)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	if err := pack(&archive, file, "name"); err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(&archive).Next(); err != nil || !h.ModTime.Equal(modified) {
		t.Errorf("%+v, %v", h, err)
	}
	if err := pack(cut{}, file, "name"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// cut is a reader that fails in the middle.
type cut struct{}

func (cut) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("text")) {
		return 0, errors.New("the reader left")
	}
	return len(p), nil
}
