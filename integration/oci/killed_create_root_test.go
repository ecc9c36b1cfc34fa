//go:build root

package oci

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// A create that is killed when it has made the cgroup leaves one that `clove check` names, with
// the command that removes it. While the create lives, and after that command, nothing is wrong.
func TestCheckNamesTheCgroupOfAKilledCreate(t *testing.T) {
	t.Setenv("CLOVE_RUN_DIR", filepath.Join(t.TempDir(), "run"))
	t.Setenv("CLOVE_ROOT", filepath.Join(t.TempDir(), "state"))
	r := newRuntime(t)
	check := func() (text string, status int) {
		cmd := exec.CommandContext(t.Context(), testhost.Binary(t, "clove"), "check")
		out, _ := cmd.CombinedOutput() // an error is a status
		return string(out), cmd.ProcessState.ExitCode()
	}
	// This hook runs when the cgroup exists, and libcontainer has not written its file.
	said := filepath.Join(directory(t, r), "said")
	bundle := r.Bundle("exec sleep 1000", func(s *specs.Spec) {
		script := "echo $$ >" + said + ".part; mv " + said + ".part " + said + "; exec sleep 1000"
		s.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", script}}}}
	})
	create := r.Command(context.Background(), "create", "--bundle", bundle, "one")
	if err := create.Start(); err != nil {
		t.Fatal(err)
	}
	r.Await("the hook", func() bool { _, err := os.Stat(said); return err == nil })
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	hook, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if text, status := check(); status != 0 {
		t.Errorf("control: while the create lives: %d: %s", status, text)
	}
	if err := create.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = create.Wait()
	_ = unix.Kill(hook, unix.SIGKILL)
	left, _ := filepath.Glob("/sys/fs/cgroup/*/clove-oci-test/" + filepath.Base(r.Directory()) + "-*")
	v2, _ := filepath.Glob("/sys/fs/cgroup/clove-oci-test/" + filepath.Base(r.Directory()) + "-*")
	if left = append(left, v2...); len(left) == 0 {
		t.Fatal("control: the create has made no cgroup")
	}
	command := "clove-oci --root " + r.Root + " delete --force one"
	if text, status := check(); status != 1 || !strings.Contains(text, left[0]+" ") || !strings.Contains(text, command) {
		t.Errorf("%d: %s\nshould name %s and %s", status, text, left[0], command)
	}
	r.Await("the removal", func() bool { return r.Do("delete", "--force", "one").Err == "" }) // init may be just ending
	if text, status := check(); status != 0 {
		t.Errorf("%d: %s", status, text)
	}
	for _, path := range left {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A create that ends leaves no note behind, whether it succeeds or fails.
func TestACreateThatEndsLeavesNoNote(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	t.Setenv("CLOVE_RUN_DIR", run)
	r := newRuntime(t)
	r.Must("create", "--bundle", r.Bundle("exec sleep 1000"), "one")
	if got := r.Do("create", "--bundle", r.Bundle("true", func(s *specs.Spec) { s.Root.Path = "nowhere" }), "two"); got.Status == 0 {
		t.Error("control: the second create succeeds")
	}
	if notes, err := os.ReadDir(filepath.Join(run, "creates")); err != nil || len(notes) > 0 {
		t.Errorf("%v, %v", notes, err)
	}
	r.Must("delete", "--force", "one")
}
