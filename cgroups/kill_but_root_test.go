//go:build root

package cgroups

import (
	"slices"
	"testing"
)

// TestKillButSparesOne: it kills every fork of the others. controlOneByOne is the control.
func TestKillButSparesOne(t *testing.T) {
	g := realGroup(t)
	controlOneByOne(t, g)
	spared := join(t, g, "while read line; do echo $line; done")
	spared.begin(t)
	explode(t, g)
	if err := g.KillBut(spared.Process.Pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the others have ended", func() bool {
		pids, err := g.Pids()
		return err == nil && slices.Equal(pids, []int{spared.Process.Pid})
	})
	// The spared process is not frozen either.
	spared.begin(t)
	spared.expectLine(t, "go")
}
