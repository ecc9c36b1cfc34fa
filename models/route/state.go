package route

// Failed reports how many calls of a target have failed since the last one that succeeded;
// from Failures on, it is left out.
func (h *Health) Failed(name string) int {
	if s := h.sick[name]; s != nil {
		return s.failures
	}
	return 0
}
