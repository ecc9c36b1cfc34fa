//go:build root

package host

import (
	"os/exec"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/netns"
)

// TestNoRulesAreLeftForAContainerThatIsGone: its removal may have looked for rules before they
// were made, and an engine's named namespace stays.
func TestNoRulesAreLeftForAContainerThatIsGone(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	n, err := netns.OpenEngine(ocitest.NewNetwork(t).Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	container := exec.Command(testhost.Tool(t, "sleep"), "1000")
	if err := container.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { container.Process.Kill(); container.Wait() }
	t.Cleanup(end)
	process, err := pidfd.Open(container.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{namespace: n, container: process,
		order: agent.Guard{Directory: t.TempDir(), PID: container.Process.Pid, Start: 1, Network: agent.NetworkNone}}
	t.Cleanup(func() { g.container.Close() })
	for _, alive := range []bool{true, false} { // the first is the control
		if !alive {
			end()
		}
		err := g.apply()
		ruled, problem := n.Ruled()
		if problem != nil || (err == nil) != alive || ruled != alive {
			t.Errorf("alive %v: ruled %v, %v, %v", alive, ruled, err, problem)
		}
	}
}
