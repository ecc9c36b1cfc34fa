package runtime

import (
	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// Remove forgets an ended run and ends the commands of its budgets: its layer and its log, then its record and its name. In this
// order a clove that is killed in between leaves nothing without a record, and the removal can
// be repeated. The store stays open meanwhile, so that the run cannot be started.
func (r *Runtime) Remove(ref string) error {
	return r.withStore(func(s *store.Store) error {
		run, err := s.Get(ref)
		if err == nil {
			err = checkEnded(run)
		}
		if err != nil {
			return err
		}
		if err := r.endCommands(run); err != nil {
			return err
		}
		if err := r.removeFiles(run); err != nil {
			return err
		}
		// gofail: var removeEmptied string
		// if err := failpoint(removeEmptied, ""); err != nil { return err }

		return s.Remove(run.Spec.ID)
	})
}

func (r *Runtime) removeFiles(run agent.Run) error {
	for _, image := range []string{run.Layer, r.paths.layer(run.Spec.ID)} { // clove's directory may have been moved
		if image == "" {
			continue
		}
		if err := removeLayer(image); err != nil {
			return agent.Failed("layer", err)
		}
	}
	return r.paths.RemoveLog(run.Spec.ID)
}
