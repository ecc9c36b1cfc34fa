//go:build root

package engines

import "testing"

// TestCRI does what a kubelet does, with and without the RuntimeClass, and then with the rules of
// annotations. In the virtual machine TestCRISystemd does the first.
func TestCRI(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startContainerd(t, "k8s.io", "")
		n := node{cri: dialCRI(t), parent: "/kubepods/%s"}
		tryPods(t, n)
		t.Run("rules", func(t *testing.T) { podRulesHold(t, n) })
	})
}
