package api

import (
	"encoding/json"
	"time"
)

// NoteAuditRecord is the notification of audit.query.
const NoteAuditRecord = "audit.record"

// AuditQueryParams choose records of the audit log. Empty fields choose all that the caller
// may see: root everything, a user what is about its own runs and namespaces.
type AuditQueryParams struct {
	Owner     *uint32   `json:"owner,omitempty"`
	Namespace string    `json:"namespace,omitempty"` // this one and those below it
	Run       string    `json:"run,omitempty"`       // name or id; of one that is gone the id
	Kind      string    `json:"kind,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Since     time.Time `json:"since,omitzero"` // inclusive
	Until     time.Time `json:"until,omitzero"` // exclusive
	Text      string    `json:"text,omitempty"` // anywhere in the record's line
	After     uint64    `json:"after,omitempty"`
	Last      int       `json:"last,omitempty"`   // only the last so many, at most 10000
	Follow    bool      `json:"follow,omitempty"` // go on until the request is cancelled
}

// AuditRecordNote is the notification of one record.
type AuditRecordNote struct {
	ID     any             `json:"id"`
	Record json.RawMessage `json:"record"` // docs/audit.md has its fields
}

// AuditQueryResult is where to go on.
type AuditQueryResult struct {
	Last uint64 `json:"last"` // the number of the log's last record when it was read
}

// AuditReadParams name a namespace, and where the last answer ended.
type AuditReadParams struct {
	RunParams
	Namespace string `json:"namespace"` // with those below it
	After     uint64 `json:"after,omitempty"`
}

// AuditReadResult is a part of the records about a namespace, the oldest first.
type AuditReadResult struct {
	Records []json.RawMessage `json:"records"`        // docs/audit.md has their fields
	Next    uint64            `json:"next,omitempty"` // what to ask with in After; absent: these were the last
}

// Names is what grants of an agent must cover.
func (p AuditReadParams) Names() []string { return []string{p.About()} }

// About is what the audit log says of the call.
func (p AuditReadParams) About() string { return "audit:" + p.Namespace }
