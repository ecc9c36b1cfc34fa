package api

import (
	"time"

	"clove.run/clove/agent"
)

// StreamTar is the output stream of run.copy_out.
const StreamTar = "tar"

// The notifications of both sides in a session.
const (
	NoteOutput     = "session.output"      // cloved: SessionOutput
	NoteInput      = "session.input"       // caller: SessionInput
	NoteCloseInput = "session.close_input" // caller: Nothing
	NoteResize     = "session.resize"      // caller: SessionSize
	NoteDetach     = "session.detach"      // caller: Nothing; run.attach is answered, the agent goes on

	// In the session that a foreground run has; of run.exec only NoteSignal, with TERM.
	NoteTaken       = "session.taken"        // cloved: Nothing; one input, or its end, was passed on
	NoteSignal      = "session.signal"       // caller: SessionSignal
	NoteCloseOutput = "session.close_output" // caller: SessionStream; its own reader has gone, and the agent meets EPIPE
)

// SessionOutput is a piece of what a process wrote.
type SessionOutput struct {
	Stream string `json:"stream"` // stdout, stderr; a terminal has only stdout
	Data   []byte `json:"data"`
	Lost   int64  `json:"lost_bytes,omitempty"` // bytes missing before it: the caller was too slow
	// Denied is what the network turned away for the first time, in place of data.
	Denied *SessionDenied `json:"denied,omitempty"`
	// Budget reached its mark, in place of data.
	Budget *SessionBudget `json:"budget,omitempty"`
	// HomeCopied names a kept home that another run has, in place of data: this one has a copy.
	HomeCopied string `json:"home_copied,omitempty"`
	// Asked is a question about the run that waits for people, in place of data.
	Asked *Approval `json:"asked,omitempty"`
}

// SessionBudget is said to the caller of a foreground run.
type SessionBudget struct {
	Budget
	Paused  bool      `json:"paused,omitempty"` // nothing is left, and the run is paused; else it reached its warning
	Timeout time.Time `json:"timeout,omitzero"` // when the wall clock ends a paused run; absent: never
}

// SessionDenied is said to the caller of a foreground run.
type SessionDenied struct {
	agent.Denial
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// SessionInputs is how many inputs a foreground run's caller may send beyond those that
// were taken: a signal must not wait behind them in the socket.
const SessionInputs = 4

// SessionSignal is one of HUP, INT, QUIT, TERM, USR1 and USR2 that the caller was sent.
type SessionSignal struct {
	Signal int `json:"signal"`
}

// SessionStream names stdout or stderr.
type SessionStream struct {
	Stream string `json:"stream"`
}

// SessionInput is a piece of what it shall read.
type SessionInput struct {
	Data []byte `json:"data"`
}

// SessionSize is the size of the caller's terminal.
type SessionSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// AttachParams joins a run's streams. Only a run that keeps its input open
// takes any.
type AttachParams struct {
	RunParams
	Size *SessionSize `json:"size,omitempty"`
	// Foreground makes it the session that a foreground run was started for: nothing
	// is lost in it, and the run ends with it.
	Foreground bool `json:"foreground,omitempty"`
}

// AttachResult says how the session ended.
type AttachResult struct {
	Detached bool `json:"detached"` // the agent goes on
	ExitCode int  `json:"exit_code"`
	// Record is how the run ended, unless it goes on.
	Record *agent.Record `json:"record,omitempty"`
}

// ExecResult says how the process ended.
type ExecResult struct {
	ExitCode int `json:"exit_code"`
	// Failure is why the command was not executed (126) or not found (127), or was ended (124).
	Failure *agent.Failure `json:"failure,omitempty"`
}

// ExecParams runs one more process in a live run's sandbox. When the session ends before it,
// and at a session.signal of TERM, it gets TERM, the run's grace, and KILL together with all
// that it started.
type ExecParams struct {
	RunParams
	Exec  agent.Exec   `json:"exec"`
	Stdin bool         `json:"stdin,omitempty"` // it reads the session's input; else the end of a file
	Size  *SessionSize `json:"size,omitempty"`  // of its terminal
	// Detach answers when it executes, and the session ends without it. It has no input, no
	// terminal, and its output is dropped.
	Detach bool `json:"detach,omitempty"`
}

// CopyParams names a path inside a run's sandbox, for run.copy_in a live run's. The session
// carries a tar archive: as input of run.copy_in, which unpacks it in the
// folder, as output "tar" of run.copy_out.
type CopyParams struct {
	RunParams
	Path agent.RawString `json:"path"`
}
