//go:build vm

package oci

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// TestTheRecordBelowSystemd: it reports an OOM kill, although systemd removes the cgroup as
// soon as it is empty, and does not wait for a process that reads its counters.
func TestTheRecordBelowSystemd(t *testing.T) {
	h := newHeld(t)
	h.Flags = []string{"--systemd-cgroup"}
	directory, share := h.shared()
	const script = "sh -c 'exec tail /dev/zero'; echo >/tmp/killed; until test -e /tmp/go; do sleep 0.1; done; exit 137"
	h.begin("one", h.Bundle(script, share, annotated(recordAt("one.json")...), func(s *specs.Spec) {
		limit := int64(16 << 20)
		s.Linux.CgroupsPath = "system.slice:clove-oci-test:one"
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit, Swap: &limit}
	}))
	h.await(directory, "killed")
	if err := os.WriteFile(filepath.Join(directory, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	h.finish("one")
	got := h.record("one.json")
	if got.Status != agent.StatusOOM || got.ExitCode != 137 || got.Events.OOMKill == nil || *got.Events.OOMKill < 1 {
		t.Errorf("%+v", got)
	}
}
