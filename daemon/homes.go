package daemon

import (
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// homes serves the methods about kept homes.
type homes struct{ sandboxes sandboxes }

func (h homes) methods() []handler {
	return []handler{on(methods.HomeList, h.list), on(methods.HomeRemove, h.remove)}
}

func (h homes) list(c *request, _ api.Nothing) (api.HomesResult, error) {
	all, err := h.sandboxes.Homes(c.peer.owner.UID)
	return api.HomesResult{Homes: all}, err
}

func (h homes) remove(c *request, p api.HomeParams) (none api.Nothing, err error) {
	return none, h.sandboxes.RemoveHome(p.Home, c.peer.owner.UID)
}
