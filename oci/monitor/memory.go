package monitor

import (
	"context"
	"strings"
)

// scopeSuffix ends the name of each cgroup that systemd makes for an engine's
// container. It is removed once it is empty, maybe before anybody could count in it.
const scopeSuffix = ".scope"

// watchMemory hears of kills for want of memory as they happen, where the end may
// be too late to count them.
func (k *keeper) watchMemory() {
	if k.order.Record == "" || k.process == nil {
		return
	}
	for _, path := range k.order.Cgroups {
		if strings.HasSuffix(path, scopeSuffix) {
			var err error
			k.memory, err = k.group.WatchOOM(context.Background()) // as long as the cgroup is there
			k.note(err)                                            // then only the end tells
			return
		}
	}
}

// countKills keeps the highest count that was seen, and what was told of: the
// cgroup may be gone by now.
func (k *keeper) countKills(told int) {
	now, _ := k.group.OOMKills()
	k.oomKills = max(k.oomKills, now, int64(told))
}
