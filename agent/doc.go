// Package agent is clove's vocabulary: what an agent is asked to be (Spec,
// Limits), the states it passes through, and the record that says how it ended.
//
// It holds values only. Nothing in it touches the operating system, so every
// other package may import it and it imports none of them. Values are made at
// the edge (the command line, a bundle), validated there once with
// Spec.Validate, and passed down unchanged.
//
// It refuses to hold behaviour: what a limit means to the kernel belongs to
// runtime and cgroups, what a default is belongs to policies.
package agent
