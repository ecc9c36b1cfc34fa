package store

import "clove.run/clove/agent"

// Live returns the wanted ones of the runs that hold a lease, in the order of
// their id ranges. It reads those alone, so its cost does not grow with the
// history, nor, where few are wanted, with what runs at once.
func (s *Store) Live(wanted func(agent.ID) bool) ([]agent.Run, error) {
	var live []agent.Run
	err := s.view(func(t *tables) error {
		for _, id := range each(t.leases.Cursor()) {
			if !wanted(agent.ID(id)) {
				continue
			}
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
