package daemon

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/metrics"
)

// events serves the method that reports what happens to runs.
type events struct {
	cache *cache
	meter *metrics.Meter
}

func (e events) methods() []handler {
	return []handler{on(methods.EventFollow, e.follow)}
}

// wanted chooses events. A run is meant by its name or id, or by the beginning
// of the id where it still exists; one that is renamed stays the same.
func (e events) wanted(c *request, p api.EventParams) (func(agent.RunEvent) bool, error) {
	id := agent.ID(p.Run)
	// A run that is gone is no error: its events may still be there, under its name and its
	// id.
	if run, err := e.cache.resolve(p.Run, c.peer.principal); err == nil && p.Run != "" {
		id = run.Spec.ID
	}
	name, err := agent.ParseRunName(p.Run, c.peer.owner.UID)
	return func(o agent.RunEvent) bool {
		// By the owner in the event, because the run itself may be gone.
		return c.peer.covers(o.ID, o.Owner) &&
			(len(p.What) == 0 || slices.Contains(p.What, o.Kind)) &&
			(p.Run == "" || agent.RunName{UID: o.Owner.UID, Name: o.Name} == name || o.ID == id)
	}, err
}

// follow gives what happened after a number, and with follow what
// happens from then on.
func (e events) follow(c *request, p api.EventParams) (api.EventResult, error) {
	if err := e.cache.refresh(); err != nil {
		return api.EventResult{}, err
	}
	wanted, err := e.wanted(c, p)
	if err != nil {
		return api.EventResult{}, err
	}
	var after uint64
	if p.After != nil {
		after = *p.After
	} else {
		after = e.cache.newest()
	}
	// Only a caller that asks for the time before cloved's start pays for reading it.
	if err := e.cache.reach(after); err != nil {
		return api.EventResult{}, err
	}
	for {
		// Taken before the look: a change between the look and the wait closes it.
		moved := e.cache.changed()
		if err := e.cache.refresh(); err != nil {
			return api.EventResult{}, err
		}
		news, last, gap := e.cache.since(after)
		// The reader was slower than the cache forgets, or its number is from another
		// store. It gets one notification of that, and goes on with what is there.
		if gap {
			e.meter.Dropped(missed(after, last, news))
			if err := c.note(api.NoteEvent, api.EventNote{ID: c.id, Gap: true}); err != nil {
				return api.EventResult{}, err
			}
		}
		for _, o := range news {
			if !o.Time.Before(p.Since) && wanted(o) {
				if err := c.note(api.NoteEvent, api.EventNote{ID: c.id, Event: &o}); err != nil {
					return api.EventResult{}, err
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
			return api.EventResult{}, c.Err()
		}
	}
}
