package runtime

import (
	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// HostMemory is what the host has and what agents use of it, in bytes.
type HostMemory struct {
	Used      int64 // by the agents that live
	Available int64 // as the kernel estimates it, for anything on the host
	Kept      int64 // what agents together never get
}

// Memory returns the host's memory and what the live ones of these runs use.
func (r *Runtime) Memory(runs []agent.Run) (HostMemory, error) {
	host, err := cgroups.ReadHostMemory()
	if err != nil {
		return HostMemory{}, agent.Failed("memory of the host", err)
	}
	var live []map[string]string
	for _, run := range runs {
		if run.Lease != nil {
			live = append(live, run.Lease.Cgroups)
		}
	}
	used, err := cgroups.UseTogether(live)
	return HostMemory{Used: used, Available: host.Available, Kept: host.Kept()}, agent.Failed("memory of agents", err)
}

// LimitTogether limits the memory of all agents together to most bytes, and to less than
// the host has (cgroups.Host.LimitTogether); 0: only to that.
func (r *Runtime) LimitTogether(most int64) error {
	h, err := detect()
	if err != nil {
		return err
	}
	return agent.Failed("memory of all agents", h.LimitTogether(most))
}
