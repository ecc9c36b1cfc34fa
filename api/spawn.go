package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// ManifestAddParams keeps a resolved manifest for agents that may start it.
type ManifestAddParams struct {
	Name  string               `json:"name"`            // of the agent in it
	Spec  agent.Spec           `json:"spec"`            // without id
	Files []agent.ManifestFile `json:"files,omitempty"` // that the spec refers to
	Keyed
}

// AddedManifest is one that its owner has added.
type AddedManifest struct {
	Owner  uint32    `json:"owner"`
	Name   string    `json:"name" col:"NAME"`
	Digest string    `json:"digest" col:"DIGEST"` // sha256: and hex, of the spec and the files
	Added  time.Time `json:"added" col:"ADDED,age"`
	Grants []string  `json:"grants,omitempty" col:"GRANTS"` // what a run of it may do at most
}

// ManifestResult is one manifest.
type ManifestResult struct {
	Manifest AddedManifest `json:"manifest"`
}

// ManifestNameParams names manifests of the caller's.
type ManifestNameParams struct {
	Name string `json:"name"`
	Keyed
}

// ManifestRemoveResult has what is forgotten.
type ManifestRemoveResult struct {
	Removed []AddedManifest `json:"removed"`
}

// ManifestListParams says where the last answer ended.
type ManifestListParams struct {
	After string `json:"after,omitempty"`
}

// ManifestListResult is a part of the caller's manifests, in the order of their names.
type ManifestListResult struct {
	Manifests []AddedManifest `json:"manifests"`
	Next      string          `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// SpawnParams starts a child from a manifest, of which each field makes it narrower. What is absent is
// the manifest's.
type SpawnParams struct {
	Manifest     string      `json:"manifest"`               // a name, which a spawn grant of the caller's covers
	Name         string      `json:"name,omitempty"`         // what the caller calls it, beside its id; no other live child has the same
	Args         []string    `json:"args,omitempty"`         // arguments behind the manifest's; of a model one, the prompt
	Env          []string    `json:"env,omitempty"`          // KEY=VALUE
	Instructions string      `json:"instructions,omitempty"` // of a model: behind the manifest's
	Limits       SpawnLimits `json:"limits,omitzero"`
	Network      string      `json:"network,omitempty"` // none: no network at all
	Deny         []string    `json:"deny,omitempty"`    // targets that are denied as well
	Grants       []string    `json:"grants,omitzero"`   // KIND:PATTERN[:RIGHTS], a part of the manifest's, or none; absent: all
	Budgets      []string    `json:"budgets,omitempty"` // DIMENSION=AMOUNT, no more than the manifest's
	Files        []SpawnFile `json:"files,omitempty"`   // copied before it starts
	Why          string      `json:"why,omitempty"`     // for the people who are asked about it, at most 1024 bytes
	Keyed
}

// SpawnLimits are limits of a child, each at most the manifest's; 0: the manifest's.
type SpawnLimits struct {
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
	CPUs        float64 `json:"cpus,omitempty"`
	Pids        int64   `json:"pids,omitempty"`
	DiskBytes   int64   `json:"disk_bytes,omitempty"`
	OutputBytes int64   `json:"output_bytes,omitempty"`
	CPUTimeMS   int64   `json:"cpu_time_ms,omitempty"`
	TimeoutMS   int64   `json:"timeout_ms,omitempty"`
}

// SpawnFile is a file or folder of the parent's that the child gets a copy of.
type SpawnFile struct {
	From string `json:"from"` // a path inside the parent's sandbox
	To   string `json:"to"`   // a path inside the child's
}

// Child is a run that an agent has started, or that is below one.
type Child struct {
	ID       agent.ID    `json:"id" col:"ID"`
	Run      string      `json:"run" col:"RUN"`             // the run's name
	Name     string      `json:"name,omitempty" col:"NAME"` // what its parent calls it
	Parent   agent.ID    `json:"parent"`
	Manifest string      `json:"manifest" col:"MANIFEST"`
	Digest   string      `json:"digest"`
	Created  time.Time   `json:"created" col:"CREATED,age"`
	State    agent.State `json:"state" col:"STATE"`
	Status   string      `json:"status,omitempty" col:"STATUS"` // of its end
	ExitCode *int        `json:"exit_code,omitempty" col:"EXIT"`
}

// SpawnResult is the child. It is queued; agent.wait reports also that it could not start.
type SpawnResult struct {
	Child Child `json:"child"`
}

// ChildParams names a descendant by its id, or a child by the name that its parent gave it.
type ChildParams struct {
	Child string `json:"child"`
}

// ChildEnd is how a descendant ended.
type ChildEnd struct {
	Child  Child           `json:"child"`
	Record agent.Record    `json:"record"`           // without its command
	Output string          `json:"output,omitempty"` // the end of what it wrote to stdout and stderr, at most 4 KiB
	Result json.RawMessage `json:"result,omitempty"` // what it gave with agent.result
}

// ChildSignalParams sends a descendant a signal, or ends it.
type ChildSignalParams struct {
	ChildParams
	Signal string `json:"signal"`           // TERM, KILL, INT, USR1, USR2, STOP, CONT, or POLICY or BUDGET, which end it with that status
	Reason string `json:"reason,omitempty"` // in the audit log, and of TERM, KILL, POLICY and BUDGET in its record
	Keyed
}

// ChildListParams asks for runs below one.
type ChildListParams struct {
	RunParams
	After string `json:"after,omitempty"`
}

// ChildListResult is a part of the runs below one.
type ChildListResult struct {
	Children []Child `json:"children"`
	Next     string  `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// ResultParams is what a run gives to what started it.
type ResultParams struct {
	Result json.RawMessage `json:"result"` // JSON of at most 48 KiB
	Keyed
}

// ChildNote says that a child has ended; agent.wait has the rest.
type ChildNote struct {
	Child Child `json:"child"`
	Repeated
}

// CollectParams ask for what a descendant has changed in its files, as files below a path of the
// caller's own.
type CollectParams struct {
	Child string   `json:"child"`           // id or name
	Path  string   `json:"path"`            // inside; at it must be nothing, or an empty folder
	Paths []string `json:"paths,omitempty"` // inside of the child, as run.diff lists them: only these, and what is below them
	Keyed
}

// FetchParams ask for a file or folder of another run's kept folder, as files below a path of the
// caller's own.
type FetchParams struct {
	Keeper string `json:"keeper"` // the name of a live run of the namespace
	From   string `json:"from"`   // inside of it: a folder that it keeps (Files.Keep), or what is below one
	Path   string `json:"path"`   // inside of the caller; at it must be nothing, or an empty folder
	Keyed
}

// CollectResult counts what was copied.
type CollectResult struct {
	Files   int           `json:"files"`   // and links
	Bytes   int64         `json:"bytes"`   // of the files
	Missing int           `json:"missing"` // changes that were left out
	Left    []CollectLeft `json:"left"`    // the first of them
}

// CollectLeft is a change that was left out.
type CollectLeft struct {
	Path agent.RawString `json:"path"`
	Why  string          `json:"why"`
}
