package route

import "time"

// State reports whether the last call of a target has failed for the owners that sees names, and
// whether one of them is kept from it. What one run alone is kept from by its own failures is
// left to that run.
func (h *Health) State(name string, sees func(owner uint32) bool, now time.Time) (failing, out bool) {
	for p, s := range h.sick {
		if p.name != name || p.of == run || p.of == owner && !sees(p.caller.Owner) || s.old(now) {
			continue
		}
		failing, out = true, out || s.leftOut(p.of)
	}
	return failing, out
}
