package api

// The methods that hold a session.
const (
	MethodRunAttach = "run.attach"
	MethodRunExec   = "run.exec"
)

// What both sides say in a session.
const (
	NoteOutput     = "session.output"      // cloved: SessionOutput
	NoteInput      = "session.input"       // caller: SessionInput
	NoteCloseInput = "session.close_input" // caller: Nothing
	NoteResize     = "session.resize"      // caller: SessionSize
	NoteDetach     = "session.detach"      // caller: Nothing; run.attach is answered, the agent goes on
)

// SessionOutput is a piece of what a process wrote.
type SessionOutput struct {
	Stream string `json:"stream"` // stdout, stderr; a terminal has only stdout
	Data   []byte `json:"data"`
	Lost   int64  `json:"lost_bytes,omitempty"` // bytes missing before it: the caller was too slow
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
}

// AttachResult says how the session ended.
type AttachResult struct {
	Detached bool `json:"detached"` // the agent goes on
	ExitCode int  `json:"exit_code"`
}

// ExecResult says how the process ended.
type ExecResult struct {
	ExitCode int `json:"exit_code"`
}
