package daemon

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// record stores how an OCI container ended. Its monitor, a process of root's,
// reports it. The record is bounded by the length of a request's line and by
// the store.
func (o containers) record(c *request, p api.ContainerParams) (api.Nothing, error) {
	r := p.Record
	// The name that store.KeepContainer expects; it gives the record the run's.
	r.Name = p.Container.ID
	if !slices.Contains(agent.Statuses, r.Status) {
		return api.Nothing{}, api.Failure(api.CodeParams, "clove-oci reports the records of containers", "%q is not the status of a record", r.Status)
	}
	var run agent.Run
	err := o.records.change(func(s *store.Store) (err error) { run, err = s.KeepContainer(p.Container, r); return err })
	if err != nil {
		return api.Nothing{}, err
	}
	o.log.Info("a container of an engine's ended", "run", run.Spec.Name, "container", p.Container.ID, "status", r.Status)
	return api.Nothing{}, nil
}
