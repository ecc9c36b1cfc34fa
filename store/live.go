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

// IDs returns the ids of all runs, live and ended, and reads nothing else of
// them.
func (s *Store) IDs() (ids map[agent.ID]bool, err error) {
	ids = map[agent.ID]bool{}
	err = s.view(func(t *tables) error {
		for id := range each(t.runs.Cursor()) {
			ids[agent.ID(id)] = true
		}
		return nil
	})
	return ids, err
}

// Some returns the runs with these ids; one that there is not is left out.
func (s *Store) Some(ids []agent.ID) (runs []agent.Run, err error) {
	err = s.view(func(t *tables) error {
		for _, id := range ids {
			run, err := t.get([]byte(id))
			if err != nil {
				return err
			}
			if run != nil {
				runs = append(runs, *run)
			}
		}
		return nil
	})
	return runs, err
}
