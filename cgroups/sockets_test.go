package cgroups

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSocketBuffers(t *testing.T) {
	t.Parallel()
	v1 := map[[2]string]string{{"memory", socketFile}: "9223372036854771712\n", {"memory", "memory.kmem.tcp.usage_in_bytes"}: "4096\n"}
	g := fakeGroup(t, v1)
	if err := g.LimitSockets(8192); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(g.paths["memory"], socketFile)); err != nil || string(text[:4]) != "8192" {
		t.Errorf("%q, %v", text, err)
	}
	if held, err := g.SocketBytes(); err != nil || held != 4096 {
		t.Errorf("%d, %v", held, err)
	}
	// If the limit cannot be set, that is an error.
	if err := fakeGroup(t, map[[2]string]string{{"memory", "cgroup.procs"}: ""}).LimitSockets(8192); err == nil {
		t.Error("a kernel without that limit took it")
	}
	v2 := fakeGroup(t, map[[2]string]string{{"", "memory.current"}: "4096\n"})
	if held, err := v2.SocketBytes(); err != nil || held != 0 || v2.LimitSockets(8192) != nil {
		t.Errorf("v2: %d, %v", held, err)
	}
}
