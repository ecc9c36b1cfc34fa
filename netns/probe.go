package netns

// Probe checks in a temporary namespace whether this kernel supports a Plan with
// Everything. The error names what is missing.
func Probe() error {
	n, err := NewPlan(Config{Everything: true}).Make()
	if err != nil {
		return err
	}
	return n.Close()
}
