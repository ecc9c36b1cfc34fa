package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer/system"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

// TestOnlyWhatWaitsIsHeld: a container with network rules is not started if its state changed
// after start looked at it.
func TestOnlyWhatWaitsIsHeld(t *testing.T) {
	rules := map[string]string{oci.AnnotationNetworkMode: agent.NetworkNone}
	for _, status := range []string{"created", "running", "paused", "stopped"} {
		order, _, err := ordered(container.State{Status: status, Annotations: rules})
		if (err == nil) != (status == "created") || order.Network != agent.NetworkNone {
			t.Errorf("%s: %+v, %v", status, order, err)
		}
		if order, _, err := ordered(container.State{Status: status}); err != nil || order.Network != "" {
			t.Errorf("%s, without rules: %+v, %v", status, order, err)
		}
	}
	if _, _, err := ordered(container.State{Status: "created", Annotations: map[string]string{oci.AnnotationNetworkMode: "most"}}); err == nil {
		t.Error("a mode that is none is taken")
	}
}

// waiting is a container whose create was killed before it checked the network; its process is
// one of the host's.
func waiting(t *testing.T, annotation string) *container.Container {
	t.Helper()
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	stat, err := system.Stat(process.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"id": "one", "init_process_pid": process.Process.Pid, "init_process_start": stat.StartTime,
		"cgroup_paths": map[string]string{"": "/sys/fs/cgroup/clove-test-without-a-cgroup"},
		"config":       map[string]any{"labels": []string{annotation}, "cgroups": map[string]any{}},
	})
	root := t.TempDir()
	directory := filepath.Join(root, "one")
	err = errors.Join(err, os.Mkdir(directory, 0o711), os.WriteFile(filepath.Join(directory, "state.json"), text, 0o600),
		unix.Mkfifo(filepath.Join(directory, "exec.fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	found, err := container.Engine{Root: root}.Load("one")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAStartLooksWhetherTheGuardIsInReach: the create, which checks it, may have been killed
// before. The control is a container without network rules.
func TestAStartLooksWhetherTheGuardIsInReach(t *testing.T) {
	t.Setenv("CLOVE_SOCKET", filepath.Join(t.TempDir(), "none"))
	if err := holdNetwork(waiting(t, oci.AnnotationPids+"=5")); err != nil {
		t.Errorf("the control: %v", err)
	}
	err := holdNetwork(waiting(t, oci.AnnotationNetworkMode+"="+agent.NetworkNone))
	if err == nil || !strings.Contains(err.Error(), "pid namespace") {
		t.Errorf("it would be held by what it can end: %v", err)
	}
}
