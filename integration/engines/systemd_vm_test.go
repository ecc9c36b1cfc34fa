//go:build vm

package engines

import (
	"os"
	"testing"

	"clove.run/clove/internal/testhost"
)

// TestCRISystemd has systemd make the pods' cgroups, as most clusters do. It uses the
// machine's own systemd, so it runs outside of a world, in the vm lane.
func TestCRISystemd(t *testing.T) {
	testhost.Root(t)
	t.Setenv("PATH", os.Getenv("CLOVE_BIN_DIR")+":"+os.Getenv("PATH"))
	startContainerd(t, "k8s.io", "SystemdCgroup = true")
	tryPods(t, node{cri: dialCRI(t), parent: "kubepods-%s.slice"})
}
