package spawn

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// shareUnit is what shares of a disk are rounded down to, in bytes.
const shareUnit = 1 << 20

// shared gives a child whose manifest has as much disk as its parent, or says nothing of it, an equal share
// of the parent's: it could not have all of it, since what the parent has written is there too.
func shared(child *agent.Spec, parent agent.Spec, places int64) {
	if l := &child.Limits; l.DiskBytes == 0 || l.DiskBytes >= parent.Limits.DiskBytes {
		l.DiskBytes = max(agent.DiskFloorBytes, parent.Limits.DiskBytes/(places+1)/shareUnit*shareUnit)
	}
}

// enoughDisk refuses a child whose disk and those of the live children of its parent's are together more
// than the parent's. Whether the parent itself has left that much is known at the child's start.
func enoughDisk(c *service.Call, run agent.Run) error {
	left := c.Run.Spec.Limits.DiskBytes
	all, err := Children.Below(c.Tx, store.RunKey(c.Run.Spec.ID, ""))
	if err != nil {
		return err
	}
	for _, k := range all {
		if k.End == nil {
			left -= k.DiskBytes
		}
	}
	if wanted := run.Spec.Limits.DiskBytes; wanted >= left { // the parent needs some itself
		size := func(n int64) string { return budget.WriteBytes.Show(max(0, n)) }
		return api.Failure(api.CodeDenied, "ask for less with limits.disk_bytes, wait for the end of a child, or give the parent more with --disk",
			"disk: %s wanted, and of %s the live children leave %s, of which the parent needs a part", size(wanted), size(c.Run.Spec.Limits.DiskBytes), size(left)).By(StageParent, api.RuleParent+"limits.disk_bytes")
	}
	return nil
}
