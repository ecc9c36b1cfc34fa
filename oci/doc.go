// Package oci reads the rules that clove adds to a container from the annotations of its
// bundle.
//
//	config.json ─ annotations ─ Parse ─▶ Rules ─ checked together
//	     │                                 │ For: less for a pod's sandbox
//	     │ resources ◀── tighten ──────────┤ limits
//	     │ capabilities ◀──────────────────┤ network, which holds from start on (oci/guard)
//	     ▼                                 └ what nothing enforces: refused
//	oci/container
//
// A rule only restricts what the engine gave. The author of annotations (of a pod, not
// the node's administrator) gains nothing by them: no network that the engine did not
// make, no limit above the engine's, no file of the host outside of RecordsDir. A key
// below Prefix that clove does not know, an ambiguous value, and a rule that nothing
// would enforce make the create fail. A warning would not do: the container would run
// without its deadline.
//
// A role in a pod exempts a container from rules. It counts only together with the
// engine's own id, because images and users write annotations too.
//
// Annotations are read at create, and limits become part of config.json's
// resources before libcontainer sees them. libcontainer keeps them for start and
// exec, which read the network's again. An engine may keep annotations from
// the runtime: containerd hands on only those of pods that its configuration
// names (pod_annotations), which nothing here can see.
package oci
