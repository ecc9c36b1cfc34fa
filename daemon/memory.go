package daemon

import (
	"clove.run/clove/agent"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
)

// hostMemory is what memory needs of the runtime.
type hostMemory interface {
	Memory(runs []agent.Run) (runtime.HostMemory, error)
	LimitTogether(most int64) error
}

// memory compares what agents have with what the host has for them.
type memory struct {
	host   hostMemory
	config func() Config
}

// of returns what a start is decided by: what the live ones of these runs use, and what the
// host has.
func (m memory) of(runs []agent.Run) (scheduler.Memory, error) {
	host, err := m.host.Memory(runs)
	return scheduler.Memory{Limit: m.config().memoryBytes(), Used: host.Used, Available: host.Available, Floor: host.Kept}, err
}

// hold makes the kernel's limit of all agents together what the configuration says.
func (m memory) hold() error { return m.host.LimitTogether(m.config().memoryBytes()) }
