// Package guard is the container's side of its network rules, in a network namespace
// that an engine made.
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
