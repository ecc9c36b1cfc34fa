// Package guard asks cloved for a guard of an OCI container with network rules, and removes
// the rules when the container is deleted. The network namespace is the engine's.
//
//	clove-oci start ── Ask ── cloved ── clove guard ── clove-gate
//	                                       │ rules, gate: package egress/host
//	clove-oci delete ─ Release ── ends it, and takes the rules out of the namespace
//
// Release needs neither guard nor cloved, which may have been killed: it reads what the
// guard wrote into the container's directory. Until then the rules stand, so that a
// container whose guard has died has no network.
//
// It does not interpret the rules.
package guard
