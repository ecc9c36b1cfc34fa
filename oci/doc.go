// Package oci is what clove adds to a bundle: the agent's own rules, read from
// its annotations.
//
//	config.json ─ annotations ─ Parse ─▶ Rules ─ checked together
//	     │                                 │ For: less for a pod's sandbox
//	     │ resources ◀── tighten ──────────┤ limits
//	     │ capabilities ◀──────────────────┤ network, which holds from start on (oci/guard)
//	     ▼                                 └ what nobody holds: refused
//	oci/container
//
// A rule only ever takes away from what the engine gave. Whoever may write
// annotations (the author of a pod, not the node's administrator) gains nothing
// by them: no network that the engine did not make, no limit above the engine's,
// no file of the host outside of RecordsDir. A key below Prefix that clove does
// not know, a value that has two readings, and a rule that nobody would hold
// fail the create. There is no warning: a container that runs without its
// deadline is what nobody asked for.
//
// A role in a pod takes rules away from the container that has it. It is believed
// where the engine's own id stands beside it, because others write annotations too.
//
// Annotations are read at create, and limits become part of config.json's
// resources before libcontainer sees them. libcontainer keeps them for start and
// exec, which read the network's again. An engine may keep annotations from
// the runtime: containerd hands on only those of pods that its configuration
// names (pod_annotations), which nothing here can see.
package oci
