package api

import (
	"time"

	"clove.run/clove/agent"
)

// Name is a name that live runs of a namespace hold, or that a user has reserved. The name topic/T has
// the subscribers of the topic T.
type Name struct {
	Owner     uint32       `json:"owner"`
	Namespace string       `json:"namespace,omitempty" col:"NAMESPACE"` // below the owner
	Name      string       `json:"name" col:"NAME"`
	Reserved  bool         `json:"reserved,omitempty" col:"RESERVED,yesno"` // it is kept also without a run
	Tags      []string     `json:"tags,omitempty" col:"TAGS,words"`         // of the reservation
	Holders   []NameHolder `json:"holders" col:"RUNS,holders"`              // the one whose turn is next comes first
	// Manifest is of what mail with wake starts a run while none holds the name, held by Digest; empty: none.
	Manifest string `json:"manifest,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Why      string `json:"why,omitempty"` // why nothing starts
}

// NameHolder is a live run that has a name.
type NameHolder struct {
	Run   agent.ID  `json:"run"`
	Name  string    `json:"name"` // of the run
	Tags  []string  `json:"tags,omitempty"`
	Since time.Time `json:"since"`
}

// NameParams names a name of the caller's namespace.
type NameParams struct {
	Name string `json:"name"`
	Keyed
}

// NameRegisterParams gives the caller's run a name, or other tags for one that it has.
type NameRegisterParams struct {
	Name string   `json:"name"`
	Tags []string `json:"tags,omitempty"` // at most 8
	Keyed
}

// NameLookupParams names a name of the caller's namespace.
type NameLookupParams struct {
	Name string `json:"name"`
}

// NameResult is one name.
type NameResult struct {
	Name Name `json:"name"`
}

// NameListParams chooses names of the caller's namespace. Empty fields choose all.
type NameListParams struct {
	Prefix string `json:"prefix,omitempty"` // with which a name begins
	Tag    string `json:"tag,omitempty"`    // of the reservation or of a holder
	After  string `json:"after,omitempty"`  // where the last answer ended
}

// NameQueryParams chooses names of users' namespaces. Empty fields choose all that the caller may see.
type NameQueryParams struct {
	Owner     *uint32 `json:"owner,omitempty"`
	Namespace *string `json:"namespace,omitempty"` // exactly this one; the empty one is the owner's own
	Prefix    string  `json:"prefix,omitempty"`
	Tag       string  `json:"tag,omitempty"`
	After     string  `json:"after,omitempty"`
}

// NameListResult is a part of the names, in the order of the namespaces and of the names.
type NameListResult struct {
	Names []Name `json:"names"`
	Next  string `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// NameReserveParams keeps a name for runs that hold it, also while none does.
type NameReserveParams struct {
	Owner     *uint32  `json:"owner,omitempty"` // absent: the caller; only root names another
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Tags      []string `json:"tags,omitempty"`
	// Manifest is a manifest of the owner's and of the namespace, of which mail with wake starts a run; empty: none.
	Manifest string `json:"manifest,omitempty"`
	Keyed
}

// NameRemoveParams names a name of a user's.
type NameRemoveParams struct {
	Owner     *uint32 `json:"owner,omitempty"` // absent: the caller; only root names another
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Keyed
}
