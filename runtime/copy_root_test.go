//go:build root

package runtime

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// copyOut returns the archive's entries by name.
func (a *liveAgent) copyOut(path string) (map[string]entry, error) {
	a.t.Helper()
	var archive bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	err := a.CopyOut(ctx, path, &archive)
	found := map[string]entry{}
	reader := tar.NewReader(&archive)
	for {
		h, rerr := reader.Next()
		if rerr != nil {
			return found, err
		}
		text, _ := io.ReadAll(reader)
		found[h.Name] = entry{*h, string(text)}
	}
}

type entry struct {
	tar.Header
	text string
}

// archive makes a tar archive of entries; a name that ends in "/" is a folder, and a text that
// begins with "->" is a link.
func archive(t *testing.T, headers ...entry) *bytes.Buffer {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range headers {
		e.Size = int64(len(e.text))
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

func file(name, text string) entry { return entry{tar.Header{Name: name, Typeflag: tar.TypeReg}, text} }

func TestCopyOut(t *testing.T) {
	a := startLive(t, `cd /workspace; mkdir -p d/e; echo one > d/one; echo two > d/e/two; ln -s one d/link; chmod 4751 d/one
		mkfifo d/pipe; mkdir d/closed; echo x > d/closed/x; chmod 0 d/closed; echo ready; exec sleep 1000`, nil)
	a.line()
	if err := a.Pause(); err != nil { // a copy works although the agent is frozen
		t.Fatal(err)
	}
	got, err := a.copyOut("/workspace/d")
	if agent.KindOf(err) != agent.KindConflict || !strings.Contains(err.Error(), "d/pipe") || !strings.Contains(err.Error(), "d/closed") {
		t.Errorf("what is left out: %v", err)
	}
	if got["d/one"].text != "one\n" || got["d/e/two"].text != "two\n" || got["d/link"].Linkname != "one" || len(got) != 6 {
		t.Errorf("%+v", got)
	}
	if one := got["d/one"]; one.Mode != 0o751 || one.Uid != 1000 || one.Gid != 1000 {
		t.Errorf("mode %o, ids %d and %d", one.Mode, one.Uid, one.Gid)
	}
	if got, err := a.copyOut("workspace/d/one"); err != nil || got["one"].text != "one\n" {
		t.Errorf("%+v, %v", got, err)
	}
	for path, kind := range map[string]agent.Kind{
		"/workspace/d/pipe": agent.KindPrivilege, "/dev/null": agent.KindPrivilege, "/proc/1/environ": agent.KindPrivilege,
		"/proc": agent.KindPrivilege, "/dev/pts/ptmx": agent.KindPrivilege, "/workspace/none": agent.KindNotFound,
		"/workspace/d/one/x": agent.KindNotFound, "/workspace/d/closed/x": agent.KindPrivilege,
	} {
		if got, err := a.copyOut(path); err == nil || agent.KindOf(err) != kind || len(got) > 0 {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
}

func TestCopyIn(t *testing.T) {
	a := startLive(t, `echo ready; exec sleep 1000`, func(s *agent.Spec) { s.Limits.DiskBytes = 32 << 20 })
	a.line()
	modified := time.Unix(1_000_000_000, 0)
	tool := file("d/tool", "#!/bin/sh\necho works\n")
	tool.Mode, tool.ModTime, tool.Uid = 0o6755, modified, 0
	link := entry{tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "tool"}, ""}
	folder := entry{tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, ""}
	for range 2 { // the second copy replaces the first
		if err := a.CopyIn(context.Background(), "/workspace", archive(t, folder, tool, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.shell("cd /workspace/d && ./link && stat -c '%a %u %g %Y' tool && ls -A"); got != "works\n755 1000 1000 1000000000\nlink\ntool\n" {
		t.Errorf("%q", got)
	}
	for name, row := range map[string]struct {
		path string
		e    entry
		kind agent.Kind
	}{
		"above":        {"/workspace", file("../x", ""), agent.KindInvalid},
		"from /":       {"/workspace", file("/tmp/x", ""), agent.KindInvalid},
		"no folder":    {"/workspace/none", file("x", ""), agent.KindNotFound},
		"no rights":    {"/", file("x", ""), agent.KindPrivilege},
		"a device":     {"/workspace", entry{tar.Header{Name: "x", Typeflag: tar.TypeChar}, ""}, agent.KindInvalid},
		"a pipe":       {"/workspace", entry{tar.Header{Name: "x", Typeflag: tar.TypeFifo}, ""}, agent.KindInvalid},
		"hard link":    {"/workspace", entry{tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "d/tool"}, ""}, agent.KindInvalid},
		"kernel's":     {"/proc", file("x", ""), agent.KindPrivilege},
		"a folder":     {"/workspace", file("d", ""), agent.KindInvalid},
		"disk is full": {"/workspace", file("big", strings.Repeat("x", 40<<20)), agent.KindConflict},
	} {
		if err := a.CopyIn(context.Background(), row.path, archive(t, row.e)); err == nil || agent.KindOf(err) != row.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := a.shell("ls -A /workspace /tmp"); strings.Contains(got, ".clove-") || strings.Contains(got, "x") {
		t.Errorf("left: %q", got)
	}
}

// secretFile is a file of the host that no agent may read or change.
func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join("/var/tmp", "clove-test-secret-"+string(agent.NewID()))
	if err := os.WriteFile(path, []byte("secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLinksLeadNowhereOutside: the control is a copy without protection, which reads the
// host's file through the agent's link.
func TestLinksLeadNowhereOutside(t *testing.T) {
	secret := secretFile(t)
	up := strings.Repeat("../", 30)
	a := startLive(t, fmt.Sprintf(`cd /workspace; ln -s %[1]s absolute; ln -s %[2]s/%[1]s relative; ln -s /proc/1/root magic
		ln -s /var/tmp folder; mkdir real; echo ready; exec sleep 1000`, secret, up), nil)
	a.line()
	careless := fmt.Sprintf("/proc/%d/root/workspace/absolute", a.s.box.pid)
	if text, err := os.ReadFile(careless); err != nil || string(text) != "secret" {
		t.Fatalf("control: %q, %v", text, err)
	}
	name := filepath.Base(secret)
	for _, path := range []string{"absolute", "relative", "magic/" + secret, "folder/" + name, "magic/" + up + secret} {
		got, _ := a.copyOut("/workspace/" + path)
		for _, e := range got {
			if e.text == "secret" {
				t.Errorf("%s: the host's file came out", path)
			}
		}
	}
	for folder, e := range map[string]entry{
		"/workspace":               file("absolute", "changed"),
		"/workspace/":              file("folder/"+name, "changed"),
		"/workspace/folder":        file(name, "changed"),
		"/workspace/magic/var/tmp": file(name, "changed"),
	} {
		_ = a.CopyIn(context.Background(), folder, archive(t, e)) // it may succeed, but only inside the sandbox
		if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
			t.Fatalf("%s, %s: the host's file is %q, %v", folder, e.Name, text, err)
		}
	}
}

// TestLinksThatChangeMeanwhile: the agent exchanges a folder and a link to the outside as fast
// as it can.
func TestLinksThatChangeMeanwhile(t *testing.T) {
	secret := secretFile(t)
	a := startLive(t, `cd /workspace; mkdir d; ln -s /var/tmp l; mkdir -p /var/tmp 2>/dev/null; echo ready
		# A copy in may make d between two steps.
		while :; do mv -T d x && mv -T l d && mv -T d l && mv -T x d || { rm -rf d x l; mkdir d; ln -s /var/tmp l; }; done 2>/dev/null`, nil)
	a.line()
	before, err := os.ReadDir("/var/tmp")
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); done++ {
		got, _ := a.copyOut("/workspace/d/" + filepath.Base(secret))
		if len(got) > 0 && got[filepath.Base(secret)].text == "secret" {
			t.Fatal("the host's file came out")
		}
		_ = a.CopyIn(context.Background(), "/workspace", archive(t, file("d/"+filepath.Base(secret), "changed")))
		_ = a.CopyIn(context.Background(), "/workspace/d", archive(t, file(filepath.Base(secret), "changed")))
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the host's file is %q, %v", text, err)
	}
	after, err := os.ReadDir("/var/tmp")
	if err != nil || len(after) != len(before) {
		t.Errorf("/var/tmp has %d files and had %d, %v", len(after), len(before), err)
	}
	t.Logf("%d rounds", done)
}

// TestACopyMayDoWhatTheAgentMay: a copy has the agent's rights and no more, although its
// caller is root.
func TestACopyMayDoWhatTheAgentMay(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "clove-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// A bind maps files of its source's owner to the agent, and not those of a third user.
	const third = 12345
	sub := filepath.Join(dir, "sub")
	theirs := filepath.Join(sub, "theirs")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(sub, 0o755), os.WriteFile(theirs, []byte("theirs"), 0o600),
		os.Chown(theirs, third, third), os.Chown(sub, third, third)); err != nil {
		t.Fatal(err)
	}
	a := startLive(t, `ln -s /mnt/shared/sub /workspace/shared; echo ready; exec sleep 1000`, func(s *agent.Spec) {
		s.Files.Binds = []agent.Bind{{Source: dir, Target: "/mnt/shared"}}
	})
	a.line()
	// Control: the caller itself, root, can read it.
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/mnt/shared/sub/theirs", a.s.box.pid)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/mnt/shared/sub/theirs", "/workspace/shared/theirs"} {
		if got, err := a.copyOut(path); err == nil || len(got) > 0 {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	for _, path := range []string{"/mnt/shared/sub", "/workspace/shared"} {
		for _, name := range []string{"theirs", "new"} {
			if err := a.CopyIn(context.Background(), path, archive(t, file(name, "changed"))); !errors.Is(err, unix.EACCES) {
				t.Errorf("%s/%s: %v", path, name, err)
			}
		}
	}
	if names, err := fs.Glob(os.DirFS(sub), "*"); err != nil || !slices.Equal(names, []string{"theirs"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// TestACopyThatNobodyTakes: a copy whose reader stops reading does not delay the agent's end.
func TestACopyThatNobodyTakes(t *testing.T) {
	a := startLive(t, `head -c 10000000 /dev/zero > /workspace/zeros; echo ready; exec sleep 1000`, nil)
	a.line()
	full, empty := pipe(t), pipe(t)
	ended := make(chan error, 2)
	go func() { ended <- a.CopyOut(context.Background(), "/workspace/zeros", full.write) }()
	go func() { ended <- a.CopyIn(context.Background(), "/workspace", empty.read) }()
	full.read.SetReadDeadline(time.Now().Add(soon))
	if _, err := io.ReadFull(full.read, make([]byte, 1000)); err != nil { // the copy is under way
		t.Fatal(err)
	}
	if err := a.Stop(0); err != nil {
		t.Fatal(err)
	}
	a.ends()
	full.read.Close()
	empty.write.Close()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a copy of an agent that ended succeeded")
		}
	}
	if err := a.CopyOut(context.Background(), "/workspace/zeros", io.Discard); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("after its end: %v", err)
	}
}
