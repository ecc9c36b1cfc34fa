package monitor

import (
	"context"
	"strings"
)

// scopeSuffix ends the name of each cgroup that systemd makes for an engine's container.
// systemd removes such a cgroup as soon as it is empty, perhaps before its counters were
// read.
const scopeSuffix = ".scope"

// watchMemory counts OOM kills as they happen, if the end may be too late to count
// them.
func (m *monitor) watchMemory() {
	if m.order.Record == "" || m.process == nil {
		return
	}
	for _, path := range m.order.Cgroups {
		if strings.HasSuffix(path, scopeSuffix) {
			var watching context.Context
			watching, m.unwatch = context.WithCancel(context.Background())
			var err error
			m.memory, err = m.group.WatchOOM(watching)
			m.note(err) // then they are counted at the end, if at all
			return
		}
	}
}

// countKills keeps the highest count that was seen; reported are those of the watch,
// because the cgroup may be gone by now.
func (m *monitor) countKills(reported int) {
	now, _ := m.group.OOMKills()
	m.oomKills = max(m.oomKills, now, int64(reported))
}
