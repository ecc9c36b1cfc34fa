package daemon

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// epitaph makes a record of what happened to a run that has been removed with
// its end.
func (m *mirror) epitaph(run agent.Run) (agent.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range slices.Backward(m.past) {
		if o.ID == run.Spec.ID && o.ExitCode != nil {
			return agent.Record{Version: agent.RecordVersion, ID: o.ID, Name: o.Name, Command: run.Spec.Command, Started: run.Started,
				Ended: o.Time, WallMS: o.Time.Sub(run.Started).Milliseconds(), Status: o.Status, ExitCode: *o.ExitCode, Denials: []agent.Denial{},
				Enforced: map[string]string{}, Unenforced: []string{}, Policy: run.Spec.Policy}, true
		}
	}
	return agent.Record{}, false
}

// wanted chooses events. A run is meant by its name or id, or by the beginning
// of the id where it still exists; one that is renamed stays the same.
func (c *call) wanted(p api.EventParams) func(agent.RunEvent) bool {
	id := agent.ID(p.Run)
	if run, err := c.mirror.resolve(p.Run, c.peer.sees); err == nil && p.Run != "" {
		id = run.Spec.ID
	}
	return func(o agent.RunEvent) bool {
		return (c.peer.root() || o.Owner.UID == c.peer.owner.UID) &&
			(len(p.What) == 0 || slices.Contains(p.What, o.Kind)) &&
			(p.Run == "" || o.Name == p.Run || o.ID == id)
	}
}

// followEvents gives what happened after a number, and with follow what
// happens from then on.
func followEvents(c *call, p api.EventParams) (any, error) {
	if err := c.mirror.refresh(); err != nil {
		return nil, err
	}
	wanted := c.wanted(p)
	var after uint64
	if p.After != nil {
		after = *p.After
	} else {
		after = c.mirror.newest()
	}
	if err := c.mirror.reach(after); err != nil {
		return nil, err
	}
	for {
		moved := c.mirror.changed()
		if err := c.mirror.refresh(); err != nil {
			return nil, err
		}
		news, last, gap := c.mirror.since(after)
		if gap {
			c.meter.Dropped(missed(after, last, news))
			if err := c.note(api.NoteEvent, api.EventNote{ID: c.id, Gap: true}); err != nil {
				return nil, err
			}
		}
		for _, o := range news {
			if !o.Time.Before(p.Since) && wanted(o) {
				if err := c.note(api.NoteEvent, api.EventNote{ID: c.id, Event: &o}); err != nil {
					return nil, err
				}
			}
		}
		after = last
		if !p.Follow {
			return api.EventResult{Last: last}, nil
		}
		select {
		case <-moved:
		case <-c.Done():
			return nil, c.Err()
		}
	}
}
