//go:build root

package oci

import (
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/oci"
)

// TestMarksAreOutOfReach: packets with a mark would leave as the gate's do.
func TestMarksAreOutOfReach(t *testing.T) {
	n := newNode(t)
	n.serve()
	const marking = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW
	for mode, want := range map[string]uint64{agent.NetworkNone: 0, agent.NetworkPublic: 0, "": marking} {
		annotations := []string{oci.AnnotationNetworkMode, mode}
		if mode == "" { // control
			annotations = nil
		}
		all := func(s *specs.Spec) {
			s.Linux.ReadonlyPaths = nil
			for _, set := range []*[]string{&s.Process.Capabilities.Bounding, &s.Process.Capabilities.Effective, &s.Process.Capabilities.Permitted} {
				*set = append(*set, "CAP_NET_RAW", "CAP_NET_ADMIN")
			}
		}
		script := "grep CapBnd /proc/self/status | cut -f 2; { echo 0 >/proc/sys/net/ipv4/tcp_fwmark_accept; } 2>/dev/null && echo written || echo refused"
		said := strings.Fields(n.Must("run", "--bundle", n.bundle(ocitest.ServerAddress, script, n.in(annotations...), all), "one"))
		sysctl := map[bool]string{true: "written", false: "refused"}[mode == ""]
		if len(said) != 2 || said[1] != sysctl {
			t.Fatalf("mode %q: %q, want %s", mode, said, sysctl)
		}
		bounding, err := strconv.ParseUint(said[0], 16, 64)
		if err != nil || bounding&marking != want {
			t.Errorf("mode %q: %#x, %v", mode, bounding, err)
		}
	}
}
