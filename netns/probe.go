package netns

// Probe tells whether this kernel can do what a Plan with Everything needs, in a
// namespace that it throws away. The error names what is missing.
func Probe() error {
	n, err := NewPlan(Config{Everything: true}).Make()
	if err != nil {
		return err
	}
	return n.Close()
}
