package store

import "clove.run/clove/agent"

// Live returns the runs that hold a lease, in the order of their id ranges. It
// reads those alone, so its cost does not grow with the history.
func (s *Store) Live() ([]agent.Run, error) {
	var live []agent.Run
	err := s.view(func(t *tables) error {
		for _, id := range each(t.leases.Cursor()) {
			run, err := t.mustGet(agent.ID(id))
			if err != nil {
				return err
			}
			live = append(live, *run)
		}
		return nil
	})
	return live, err
}
