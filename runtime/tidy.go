package runtime

import (
	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// tidy removes what killed cloves have left and the store does not know, or no longer.
// A clove that is killed before its run is stored, or after the run has ended there,
// leaves the run directory, which is made first and removed last, and with it perhaps a
// cgroup and a layer; or an unfinished template. live are the runs with a lease. `clove
// check` reports what fails here.
func (r *Runtime) tidy(live map[agent.ID]bool) (tidied bool) {
	for _, name := range runsOf(r.paths.Run) {
		if id := agent.ID(name); id.Valid() && !live[id] && !r.supervised(id) && len(stuckIn(r.paths.runDirectory(id))) == 0 {
			tidied = true
			_ = r.whileClaimed(id, func(run agent.Run) error { return r.removeOrphans(run, id) })
		}
	}
	abandoned, _ := rootfs.SweepAbandoned(r.paths.State)
	return tidied || len(abandoned) > 0
}

// liveIDs returns the ids of the runs that hold a lease.
func liveIDs(s *store.Store) (map[agent.ID]bool, error) {
	live := map[agent.ID]bool{}
	_, err := s.Live(func(id agent.ID) bool { live[id] = true; return false })
	return live, err
}

// removeOrphans removes all that lies on the host for a run that is not live, and releases its
// layer; run is what the store has of it.
func (r *Runtime) removeOrphans(run agent.Run, id agent.ID) error {
	h, err := detect()
	if err == nil {
		err = removeCgroups(h.Place(r.cgroupName(id)).Paths)
	}
	if err != nil || run.Layer != "" {
		return err
	}
	_, err = r.paths.releaseLayer(id)
	return err
}
