package runtime

import (
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// StoreOverview is the store's file as it lies on the disk.
type StoreOverview = store.Overview

// StoreOverview looks into the store's file.
func (r *Runtime) StoreOverview() (overview StoreOverview, err error) {
	err = r.withStore(func(s *store.Store) error { overview, err = s.Overview(); return err })
	return overview, err
}

// StoredRun returns a run as it lies in the store, secrets included.
func (r *Runtime) StoredRun(ref string) (value json.RawMessage, err error) {
	err = r.withStore(func(s *store.Store) error { value, err = s.Raw(ref); return err })
	return value, err
}

// History returns what happened last, at most limit events.
func (r *Runtime) History(limit int) (past []agent.RunEvent, err error) {
	err = r.withStore(func(s *store.Store) error { past, err = s.History(limit); return err })
	return past, err
}

// Plan returns the steps by which a run's root is built, as this host would
// build it now.
func (r *Runtime) Plan(run agent.Run) (string, error) {
	// A run without a lease gets its ids at its next start. The first range stands for
	// them, as in prepare.
	hostID := uint32(agent.FirstHostID)
	if run.Lease != nil {
		hostID = run.Lease.HostID()
	}
	root := rootConfig(r.paths, run.Spec, hostID)
	var err error
	if root.ResolvConf, root.Hosts, err = networkFiles(run.Spec); err != nil {
		return "", err
	}
	plan, err := rootfs.NewPlan(root)
	if err != nil {
		return "", err
	}
	return plan.String(), nil
}
