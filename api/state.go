package api

import (
	"encoding/json"
	"time"
)

// StateScope says between which runs the keys of a scope are shared, all of one owner and namespace.
type StateScope string

// The scopes.
const (
	StateRun       StateScope = "run"       // none: they go when the run is removed
	StateName      StateScope = "name"      // those with a grant for keys of one name
	StateNamespace StateScope = "namespace" // all with a grant
)

// StateWhere names a scope, for agents.
type StateWhere struct {
	Scope StateScope `json:"scope,omitempty"` // run, name or namespace; absent: that of name, or else run
	Name  string     `json:"name,omitempty"`  // of the scope name
}

// StatePath names a key of a scope.
type StatePath struct {
	StateWhere
	Path string `json:"path"` // parts with / between them: plans/today
}

// StateIf is the condition of a change.
type StateIf struct {
	IfVersion *uint64 `json:"if_version,omitempty"` // the version that there must be, 0: none; absent: any
}

// StateEntry is a key as it stands.
type StateEntry struct {
	Path    string    `json:"path" col:"PATH"`
	Version uint64    `json:"version" col:"VERSION"`       // each change in the scope has a higher one; 0: there is no such key
	Bytes   int64     `json:"bytes,omitempty" col:"BYTES"` // of the value and of the blob
	Blob    *Blob     `json:"blob,omitempty"`              // blob.read returns it, with the key as at
	Changed time.Time `json:"changed,omitzero" col:"CHANGED,age"`
	Expires time.Time `json:"expires,omitzero" col:"EXPIRES,until"`
}

// StateResult is a key with its value.
type StateResult struct {
	StateEntry
	Value json.RawMessage `json:"value,omitempty"` // absent: there is no such key, or only a blob
}

// StateGetParams asks for a key.
type StateGetParams struct{ StatePath }

// StateSetParams sets a key.
type StateSetParams struct {
	StatePath
	StateIf
	Value     json.RawMessage `json:"value"`                // at most 48 KiB; null beside a blob: that alone
	Blob      string          `json:"blob,omitempty"`       // SHA-256 of one that the caller may read
	ExpiresMS int64           `json:"expires_ms,omitempty"` // from now; 0: never
	Keyed
}

// StateSetResult is the key's version now.
type StateSetResult struct {
	Version uint64 `json:"version"`
}

// StateDeleteParams removes a key.
type StateDeleteParams struct {
	StatePath
	StateIf
	Keyed
}

// StateDeleteResult is the version that was removed.
type StateDeleteResult struct {
	Version uint64 `json:"version"` // 0: there was no such key
}

// StateListParams asks for the keys at a path and below it.
type StateListParams struct {
	StateWhere
	Path  string `json:"path,omitempty"`  // absent: all keys of the scope
	After string `json:"after,omitempty"` // next of the answer before, to go on behind it
}

// StateListResult has keys in the order of their paths, without their values.
type StateListResult struct {
	Keys []StateEntry `json:"keys"`
	Next string       `json:"next,omitempty"` // there are more
}

// StateWatchParams waits for a change of a key.
type StateWatchParams struct {
	StatePath
	Version uint64 `json:"version"` // the one that the caller knows; 0: it knows of none
	Within
}

// StateOf names a scope, for users.
type StateOf struct {
	Owner     *uint32 `json:"owner,omitempty"`     // absent: the caller; only root names another
	Namespace string  `json:"namespace,omitempty"` // absent: runs that have none
	Name      string  `json:"name,omitempty"`      // the scope of this name; absent: that of the namespace
}

// StateReadParams asks for a key of a scope.
type StateReadParams struct {
	StateOf
	Path string `json:"path"`
}

// StateWriteParams sets a key of a scope.
type StateWriteParams struct {
	StateOf
	StateIf
	Path      string          `json:"path"`
	Value     json.RawMessage `json:"value"`                // at most 48 KiB; null beside a blob: that alone
	Blob      string          `json:"blob,omitempty"`       // SHA-256 of one that the caller may read
	ExpiresMS int64           `json:"expires_ms,omitempty"` // from now; 0: never
	Keyed
}

// StateRemoveParams removes a key of a scope.
type StateRemoveParams struct {
	StateOf
	StateIf
	Path string `json:"path"`
	Keyed
}

// StateQueryParams asks for the keys of a scope at a path and below it.
type StateQueryParams struct {
	StateOf
	Path  string `json:"path,omitempty"`  // absent: all keys of the scope
	After string `json:"after,omitempty"` // next of the answer before, to go on behind it
}

// At is what the parameters name.
func (p StatePath) At() StatePath { return p }

// At is what the parameters name.
func (p StateListParams) At() StatePath { return StatePath{p.StateWhere, p.Path} }

// At is what the parameters name.
func (p StateReadParams) At() (StateOf, string) { return p.StateOf, p.Path }

// At is what the parameters name.
func (p StateWriteParams) At() (StateOf, string) { return p.StateOf, p.Path }

// At is what the parameters name.
func (p StateRemoveParams) At() (StateOf, string) { return p.StateOf, p.Path }

// At is what the parameters name.
func (p StateQueryParams) At() (StateOf, string) { return p.StateOf, p.Path }
