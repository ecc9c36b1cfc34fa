package api

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Version is the contract's own: it rises when a method or a field is added.
const Version = 1

// DefaultSocket is where cloved listens and clove looks.
const DefaultSocket = "/run/clove/clove.sock"

// Access says who may call a method. Only root and members of cloved's group get as far as
// a connection to cloved. An agent has a socket of its own (docs/kernel.md).
type Access string

// The access rules.
const (
	AccessMember Access = "member" // every user who may connect; runs that a caller does not own are left out
	AccessOwner  Access = "owner"  // root, and the owner of the run that the parameters name
	AccessRoot   Access = "root"   // what concerns cloved or the host, and not one run
	AccessAgent  Access = "agent"  // as AccessOwner, and the run's agent over its own socket, which names no run
	AccessSelf   Access = "self"   // the run's agent alone
)

// Callers are those who may call, as a contract lists them: root, member (a user who may connect),
// owner (of the run that the parameters name) and agent.
func (a Access) Callers() []string {
	return map[Access][]string{
		AccessMember: {"root", "member"}, AccessOwner: {"root", "owner"}, AccessRoot: {"root"},
		AccessAgent: {"root", "owner", "agent"}, AccessSelf: {"agent"},
	}[a]
}

// Tier says what a method promises to programs that call it.
type Tier string

// The tiers.
const (
	Stable       Tier = "stable"       // nothing that callers rely on is taken away while Version stays
	Experimental Tier = "experimental" // may change in each release, which CHANGELOG.md says
)

// Shape says what a call looks like on the wire.
type Shape string

// The shapes.
const (
	ShapeCall    Shape = "call"    // one response
	ShapeStream  Shape = "stream"  // notifications, then the response
	ShapeSession Shape = "session" // a stream in both directions on its own connection
)

// Audit says which calls of a method cloved records in the audit log itself, and as what kind
// of record (package audit has the kinds). The Kernel records its own decisions.
type Audit string

// The kinds of records.
const (
	AuditAdmin Audit = "admin"
	AuditExec  Audit = "exec"
	AuditLimit Audit = "limit"
)

// Row is one method of the contract, with the types of its parameters and of its result: the
// table, the handler in package daemon and the call in package client follow from it.
type Row[P, R any] struct {
	Name   string
	Shape  Shape // empty: ShapeCall
	Access Access
	Tier   Tier
	Notes  string // of a stream: its notification's method
	Errors []Code // besides those that every method can give
	Audit  Audit  // empty: cloved records no call
	Waits  bool   // a call waits until there is something, also while cloved is away
	Doc    string
}

// Method is a row without its types, for tables.
type Method struct {
	Name   string
	Shape  Shape
	Access Access
	Tier   Tier
	Params any // a zero value of the type
	Result any
	Notes  string
	Errors []Code
	Audit  Audit
	Waits  bool
	Doc    string
	// Decode is the row's Decode; the value has the type of Params.
	Decode func(text json.RawMessage) (any, error)
}

// Method returns the row as tables have it.
func (r Row[P, R]) Method() Method {
	return Method{Name: r.Name, Shape: cmp.Or(r.Shape, ShapeCall), Access: r.Access, Tier: r.Tier, Params: *new(P), Result: *new(R),
		Notes: r.Notes, Errors: r.Errors, Audit: r.Audit, Waits: r.Waits, Doc: r.Doc, Decode: func(text json.RawMessage) (any, error) { return r.Decode(text) }}
}

// Decode reads the method's parameters, in which no field may be unknown; none are {}. With an
// error, which has CodeParams, it returns what could be read.
func (r Row[P, R]) Decode(text json.RawMessage) (p P, err error) {
	err = DecodeParams(text, &p)
	return p, err
}

// Table is a list of methods.
type Table []Method

// Find returns the row of a method.
func (t Table) Find(name string) (Method, bool) {
	i := slices.IndexFunc(t, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return t[i], true
}

// Summary is the first sentence of the description.
func (m Method) Summary() string {
	first, _, _ := strings.Cut(m.Doc, ". ")
	return strings.TrimSuffix(first, ".")
}

// ForAgents reports whether an agent may call the method over its own socket.
func (m Method) ForAgents() bool { return m.Access == AccessAgent || m.Access == AccessSelf }

// CommonErrors can come from every method.
var CommonErrors = []Code{CodeParams, CodeInternal, CodeDenied, CodeBusy, CodeCancelled, CodeStorage, CodeDraining}

// RunErrors are the errors of a method that is about one run.
var RunErrors = []Code{CodeNotFound, CodeConflict}
