// Package agent has the types that all of clove shares: the request for a run (Spec,
// Limits), its states, and the record of how it ended.
//
// Theory of operation. A Spec is made at an edge (the command line, the API, a manifest),
// validated there with Spec.Validate, and passed down unchanged. Only Update changes the
// Spec of a live run. The states and their transitions are one table (state.go).
//
// It imports none of clove's packages but two leaves of internal (atomicfile, rlimits), so
// every other package may import it. Only the state file of a guard is read and written
// here, because clove-oci and cloved share it (guard.go).
//
// It refuses to contain behaviour. The packages runtime and cgroups know what a limit means
// to the kernel, and package policies has the defaults.
package agent
