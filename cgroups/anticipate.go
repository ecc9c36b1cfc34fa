package cgroups

// Anticipate takes, ahead of time, the wait that the kernel puts before moving
// a process between cgroups, and returns when it is over. cgroup_attach_task
// holds cgroup_threadgroup_rwsem for writing (kernel/cgroup/cgroup.c), and the
// first writer after a pause waits for an RCU grace period: 5 to 15 ms. Writers
// that follow within about 10 ms do not. The move made here is of clove itself
// to where it is already, so it changes nothing; who calls it in a goroutine
// while the root is being built spares the agent's start that wait.
//
// Nothing depends on it, so it reports nothing.
func (h *Host) Anticipate() {
	if h.own != "" {
		_ = write(h.own, "cgroup.procs", "0") // "0" is the writer itself, cgroups(7)
	}
}

// ownDir finds clove's own cgroup in any one hierarchy.
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
