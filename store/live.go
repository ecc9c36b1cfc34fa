package store

import "clove.run/clove/agent"

// Live returns those of the runs with a lease that wanted accepts, in the order of
// their id ranges. It decodes no others, so its cost does not grow with the number of
// ended runs, nor, where few are wanted, with the number of live ones.
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

// IDs returns the ids of all runs, live and ended, without decoding the runs.
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

// Some returns the runs with these ids; an id without a run is skipped. gc asks with the
// names of what it found on the host, and not all of that is a run's.
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
