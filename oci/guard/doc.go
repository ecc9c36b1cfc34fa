// Package guard is the container's side of network rules in a namespace that an
// engine made.
//
//	clove-oci start ── Ask ── cloved ── clove guard ── clove-gate
//	                                       │ rules, gate: package egress/host
//	clove-oci delete ─ Release ── ends it, and takes the rules out of the namespace
//
// Release needs nobody's help: it reads what the guard wrote into the
// container's directory, and works the same whether the guard and cloved live or
// were killed. Until then the rules stand, so that a container without its guard
// has no network.
//
// It refuses to know what the rules say.
package guard
