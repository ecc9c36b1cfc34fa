package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"clove.run/clove/agent"
)

// Code is the number of a JSON-RPC error.
type Code int

// The error codes, all of them. The first five are the standard's.
const (
	CodeParse         Code = -32700
	CodeRequest       Code = -32600
	CodeMethod        Code = -32601
	CodeParams        Code = -32602
	CodeInternal      Code = -32603
	CodeNotFound      Code = -32001
	CodeConflict      Code = -32002
	CodeUnenforceable Code = -32003
	CodeDenied        Code = -32004
	CodeBusy          Code = -32005
	CodeTooLarge      Code = -32006
	CodeCancelled     Code = -32007
	CodeDraining      Code = -32008
	CodeStorage       Code = -32009
	CodeSession       Code = -32010
	CodeBudget        Code = -32011
)

// codeRow is one error code: its stable word, the kind that it is to Go callers, and what
// it means. Programs compare Word; messages may change.
type codeRow struct {
	Code    Code
	Word    string
	Kind    agent.Kind
	Meaning string
	Hint    string // where the error itself has none
}

// Codes is the closed set, in the order of the documents.
var Codes = []codeRow{
	{CodeParse, "parse", agent.KindInvalid, "the line is not JSON, or nests too deeply", "send one JSON object a line"},
	{CodeRequest, "request", agent.KindInvalid, "the object is not a request", "docs/api.md says what a request looks like"},
	{CodeMethod, "method", agent.KindNotFound, "there is no such method", "docs/api.md lists the methods"},
	{CodeParams, "invalid", agent.KindInvalid, "the parameters are wrong: change them", "docs/api.md lists each method's parameters"},
	{CodeInternal, "internal", agent.KindInternal, "an internal error occurred", "cloved's own log says more"},
	{CodeNotFound, "not-found", agent.KindNotFound, "there is no such run, file or command; also for what the caller may not see", "clove ps -a lists the runs"},
	{CodeConflict, "conflict", agent.KindConflict, "the name is taken, or the run's state forbids it", "clove ps -a shows its state"},
	{CodeUnenforceable, "unenforceable", agent.KindUnenforceable, "this host cannot enforce the limit", "clove doctor says why"},
	{CodeDenied, "denied", agent.KindPrivilege, "the caller may not do that", "ask root"},
	{CodeBusy, "busy", agent.KindBusy, "another process holds it, or there are too many: try again", "try again in a moment"},
	{CodeTooLarge, "too-large", agent.KindInvalid, "the message is larger than the limit", "send less at once"},
	{CodeCancelled, "cancelled", agent.KindConflict, "the request was cancelled", "send it again if you did not cancel it"},
	{CodeDraining, "draining", agent.KindBusy, "cloved is shutting down; agents continue to run", "connect again in a moment"},
	{CodeStorage, "storage", agent.KindInternal, "the disk is full or fails; nothing was changed", "make space for cloved's state directory"},
	{CodeSession, "session", agent.KindInvalid, "a session needs a connection of its own", "open another connection for it"},
	{CodeBudget, "budget", agent.KindBusy, "nothing of the amount is left, or less than was asked for", "clove budget raise gives more"},
}

// rowOf returns false for a code that this build does not know, of a newer cloved or of
// another server.
func rowOf(code Code) (codeRow, bool) {
	i := slices.IndexFunc(Codes, func(row codeRow) bool { return row.Code == code })
	if i < 0 {
		return codeRow{}, false
	}
	return Codes[i], true
}

// Error is an error on the wire. It is also an error for Go callers, which find
// the *agent.Error in it.
type Error struct {
	Code    Code      `json:"code"`
	Message string    `json:"message"`
	Data    ErrorData `json:"data"`
}

// ErrorData is what an error says besides its message.
type ErrorData struct {
	Word string `json:"word"`           // the code's stable string
	Step string `json:"step,omitempty"` // which step or parameter it was
	Rule string `json:"rule,omitempty"` // of a refusal: what decided, one of the rules below
	Hint string `json:"hint,omitempty"` // what to do about it
	// Record is that of a run whose start failed.
	Record *agent.Record `json:"record,omitempty"`
}

// The rules that refuse. Behind those that end with a colon stands what they name.
const (
	RuleMethods  = "methods"       // the method is not for this caller
	RuleOwnRun   = "own-run"       // an agent calls for its own run
	RuleRequest  = "request:"      // and a field: a request would be wider than the manifest
	RuleParent   = "parent:"       // and a field of the spec: a child would have more than its parent
	RuleGrant    = "grant:"        // the grant with this id
	RuleWithin   = "within"        // nothing came in the time for which the call waits
	RuleMailbox  = "mailbox"       // a mailbox is full
	RuleState    = "state"         // a key has another version, or there is no more room for keys
	RuleBlobs    = "blobs"         // an owner's blobs, or a caller's uploads, are as many as may be
	RuleManifest = "manifest"      // what the manifest or the command line of the run says that it may get
	RuleBudget   = "budget:"       // ACCOUNT DIMENSION
	RuleCounted  = "counted:"      // clove counts this dimension itself
	RuleNetwork  = "network"       // what the run's own network, or its owner's rules, can reach
	RuleUser     = "user:"         // what users may not use, or have so much of
	RuleCeiling  = "ceiling"       // the host's policy that bounds every run
	RulePanic    = agent.RulePanic // clove panic
)

// By notes in a refusal which rule decided, and in which step of the call; empty: in none
// that has a name. It returns the error.
func (e *Error) By(step, rule string) *Error {
	e.Data.Step, e.Data.Rule = step, rule
	return e
}

// Error is the text that the same error has in a clove without cloved.
func (e *Error) Error() string { return e.Known().Error() }

// Unwrap lets errors.As find an *agent.Error, so that callers treat errors of cloved and of
// their own process alike.
func (e *Error) Unwrap() error { return e.Known() }

// Known is the error as the rest of clove knows it. A code that is not known is an internal
// error.
func (e *Error) Known() *agent.Error {
	known := &agent.Error{Kind: agent.KindInternal, Step: e.Data.Step, Message: e.Message, Hint: e.Data.Hint, Rule: e.Data.Rule}
	if row, found := rowOf(e.Code); found {
		known.Kind = row.Kind
	}
	return known
}

// Failure makes an error with a code of the set.
func Failure(code Code, hint, format string, values ...any) *Error {
	row, _ := rowOf(code)
	hint = cmp.Or(hint, row.Hint)
	return &Error{Code: code, Message: fmt.Sprintf(format, values...), Data: ErrorData{Word: row.Word, Hint: hint}}
}

// codeOfKind is the code that an error of clove's own becomes.
var codeOfKind = map[agent.Kind]Code{
	agent.KindInvalid:       CodeParams,
	agent.KindNotFound:      CodeNotFound,
	agent.KindConflict:      CodeConflict,
	agent.KindUnenforceable: CodeUnenforceable,
	agent.KindPrivilege:     CodeDenied,
	agent.KindBusy:          CodeBusy,
	agent.KindInternal:      CodeInternal,
}

// storageErrors come from a disk that is full or fails. Callers get a code of their own for
// them: cloved is well, and the same call may work later.
var storageErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}

// ErrorOf puts any error into the closed set.
func ErrorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	failure := agent.FailureOf(err)
	code := codeOfKind[agent.KindOf(err)]
	// Only of an error without a kind of its own: a mistake of the caller's stays one,
	// whatever is wrapped in it.
	if code == CodeInternal && slices.ContainsFunc(storageErrors, func(number syscall.Errno) bool { return errors.Is(err, number) }) {
		code = CodeStorage
	}
	e := Failure(code, failure.Hint, "%s", failure.Message)
	e.Data.Step = failure.Step
	var known *agent.Error
	if errors.As(err, &known) {
		e.Data.Rule = known.Rule
	}
	return e
}

// DecodeParams reads a method's parameters, in which no field may be unknown; none are {}.
// A field that is misspelled, such as a limit, would otherwise be left out silently.
func DecodeParams(text json.RawMessage, into any) error {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return Unreadable(err)
	}
	// encoding/json has replaced those that are not in an agent.RawString: another file or run
	// would be meant.
	if n := agent.UnpairedSurrogates(text); n > 0 {
		if kept, err := json.Marshal(into); err != nil || agent.UnpairedSurrogates(kept) != n {
			return Unreadable(errors.New(`an unpaired surrogate (\udc80 to \udcff) is in a text that is UTF-8`))
		}
	}
	return nil
}

// Unreadable is the error of parameters that are not those of their method.
func Unreadable(err error) *Error {
	return Failure(CodeParams, "", "the parameters cannot be read: %v", err)
}

// ParseError reads an error object from the wire.
func ParseError(text json.RawMessage) *Error {
	e := new(Error)
	if err := json.Unmarshal(text, e); err != nil {
		// The data of another server's error may be of any kind.
		var bare struct {
			Code    Code   `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(text, &bare)
		e.Code, e.Message = bare.Code, bare.Message
	}
	return e
}
