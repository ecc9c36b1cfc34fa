//go:build root

package engines

import "testing"

// TestCRI does what a kubelet does, with and without the RuntimeClass. In the virtual machine
// TestCRISystemd does that.
func TestCRI(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startContainerd(t, "k8s.io", "")
		tryPods(t, node{cri: dialCRI(t), parent: "/kubepods/%s"})
	})
}
