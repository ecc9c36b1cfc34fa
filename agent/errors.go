package agent

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// Kind groups errors by what the caller can do about them.
type Kind string

// The error kinds. Everything that is not one of the first six is KindInternal.
const (
	KindInvalid       Kind = "invalid"       // the request is wrong: change it
	KindNotFound      Kind = "not-found"     // no such agent, file or command
	KindConflict      Kind = "conflict"      // the name is taken, the state forbids it
	KindUnenforceable Kind = "unenforceable" // this host cannot enforce the limit
	KindPrivilege     Kind = "privilege"     // root or a capability is missing
	KindBusy          Kind = "busy"          // another process holds it: try again
	KindInternal      Kind = "internal"      // an internal error occurred
)

// Error is the one error type for users: the step that failed, what happened, and a hint.
// Err is the cause, if there is one.
type Error struct {
	Kind    Kind
	Step    string // the launch step or the flag, for example "rootfs: mount overlay" or "--memory"
	Message string // lower case, no full stop
	Hint    string // what to do about it; may be empty
	Rule    string // of a refusal: what decided, as api.ErrorData has it; may be empty
	Err     error
}

// RulePanic is the Rule of what a panic forbids.
const RulePanic = "panic"

// Error leaves the hint out: each caller shows it apart from the message.
func (e *Error) Error() string {
	text := e.Message
	if e.Step != "" {
		text = e.Step + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Failed wraps err with the name of the step that failed. An *Error that already has a step
// is returned unchanged; nil stays nil.
func Failed(step string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &Error{Kind: KindInternal, Step: step, Message: "failed", Err: err}
}

// Failure is an Error as it is stored in a Record.
type Failure struct {
	Step    string `json:"step"`
	Message string `json:"message"`
	Errno   string `json:"errno,omitempty"` // the system's text for the error number
	Hint    string `json:"hint,omitempty"`
}

// FailureOf flattens err for the record: an error chain has no JSON form.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	failure := &Failure{Message: err.Error()}
	var known *Error
	if errors.As(err, &known) {
		failure.Step, failure.Hint = known.Step, known.Hint
		failure.Message = known.Message
		if known.Err != nil {
			failure.Message += ": " + known.Err.Error()
		}
	}
	failure.Message = unjoined(failure.Message, err)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		failure.Errno = errno.Error()
	}
	return failure
}

// unjoined returns text with the parts of err that errors.Join put on separate lines joined
// by "; ". Other line breaks stay: a name with a line break may be an attempt to fake
// a message, and must not look like two errors.
func unjoined(text string, err error) string {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return unjoined(text, e.Unwrap())
	case interface{ Unwrap() []error }:
		var lines, clean []string
		for _, one := range e.Unwrap() {
			lines, clean = append(lines, one.Error()), append(clean, unjoined(one.Error(), one))
		}
		return strings.Replace(text, strings.Join(lines, "\n"), strings.Join(clean, "; "), 1)
	}
	return text
}

// KindOf returns the kind of err, KindInternal where it has none.
func KindOf(err error) Kind {
	var known *Error
	if errors.As(err, &known) && known.Kind != "" {
		return known.Kind
	}
	return KindInternal
}

// StartCloved is the hint that starts cloved: by systemd only where that runs (sd_booted(3)).
func StartCloved() string {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return "start cloved: sudo systemctl start clove"
	}
	return "start cloved: sudo cloved &"
}
