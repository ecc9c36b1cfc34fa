package cgroups

// Anticipate pays in advance the delay of the kernel's first move of a process between
// cgroups. cgroup_attach_task holds cgroup_threadgroup_rwsem for writing
// (kernel/cgroup/cgroup.c), and the first writer after a pause waits for an RCU grace
// period, 5 to 15 ms. Writers that follow within about 10 ms do not wait. The move made
// here is that of clove itself into the cgroup it is already in, so it changes nothing. A
// caller that runs it in a goroutine while the root is being built removes this delay from
// the agent's start.
//
// It is an optimisation only, so it reports no error.
func (h *Host) Anticipate() {
	if h.own != "" {
		_ = write(h.own, "cgroup.procs", "0") // "0" is the writer itself, cgroups(7)
	}
}

// ownDir finds clove's own cgroup in some hierarchy; all of them share the lock. "" means
// that it is not visible or cannot be written, so that Anticipate does nothing.
func (h *Host) ownDir(own map[string]string) string {
	if h.mode == ModeV2 {
		m := h.trees[unified].mount
		dir, foreign := below(m, "/", own[unified])
		if foreign {
			return ""
		}
		return dir
	}
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if t, mounted := h.trees[controller]; mounted && !t.foreign && !t.readOnly {
			return t.base
		}
	}
	return ""
}
