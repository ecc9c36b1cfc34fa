package initproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// The descriptors that clove-init inherits besides the agent's 0, 1 and 2.
const (
	ControlFD = 3 // its half of Pair
	ExitFD    = 4 // regular file, write-only
)

// MaxMessageBytes bounds one frame's JSON. execve(2) takes at most 6 MiB of
// arguments and environment (three quarters of the kernel's _STK_LIM), which
// base64 makes 8 MiB; the rest of the orders is far below the spare half.
const MaxMessageBytes = 8<<20 + 512<<10

// Message is one frame: exactly one field is set.
type Message struct {
	Orders     *Orders     `json:"orders,omitempty"`
	Signal     *Signal     `json:"signal,omitempty"`
	Stop       *Stop       `json:"stop,omitempty"`
	Extend     *Extend     `json:"extend,omitempty"`
	Extended   *Extended   `json:"extended,omitempty"`
	Entered    *Entered    `json:"entered,omitempty"`
	Started    *Started    `json:"started,omitempty"`
	ExecFailed *ExecFailed `json:"exec_failed,omitempty"`
	Exited     *Exited     `json:"exited,omitempty"`
}

// Signal forwards a signal. Those that a terminal's keys and its loss make
// (HUP INT QUIT TSTP CONT WINCH) go to the agent's process group, as a
// terminal would send them; all others to the agent's first process. One that
// comes before the agent executes waits for it.
type Signal struct {
	Number syscall.Signal `json:"number"`
}

// Stop ends the agent: Orders.StopSignal (and CONT) to every process, KILL to those that
// are left after Grace. A second Stop may only shorten the grace.
type Stop struct {
	Grace time.Duration `json:"grace_ns"`
}

// Extend gives the run another wall clock, from Started on as that of the
// orders; 0 takes it away. It is answered with Extended.
type Extend struct {
	WallClock time.Duration `json:"wall_clock_ns"`
}

// Extended answers Extend. Without Accepted everything is as it was: the time
// is over already, or the agent is being ended.
type Extended struct {
	WallClock time.Duration `json:"wall_clock_ns"` // as it was asked for
	Accepted  bool          `json:"accepted"`
}

// EnterArgument makes clove-init a second stage that another supervisor's
// process started, in a sandbox that exists: it says Entered, and gets orders.
const EnterArgument = "enter"

// Entered says that a second stage is in the sandbox, as the agent is but for
// its ids and limits, and waits for its orders.
type Entered struct{}

// Started says that the agent executes.
type Started struct {
	PID        int   `json:"pid"`          // inside the sandbox
	BootTimeNS int64 `json:"boot_time_ns"` // CLOCK_BOOTTIME; the wall clock counts from here
	Spent      Spent `json:"spent"`
	// Terminal is the pty's master, nil without a terminal. The receiver owns it.
	Terminal *os.File `json:"-"`
}

// Spent is what the sandbox's cgroup had counted when the agent was about to
// execute, which is the launch's own. 0: this kernel does not count it.
type Spent struct {
	CPUNS           int64 `json:"cpu_ns,omitempty"`
	CPUUserNS       int64 `json:"cpu_user_ns,omitempty"` // with CPUSystemNS not always CPUNS: v1 samples the two
	CPUSystemNS     int64 `json:"cpu_system_ns,omitempty"`
	MemoryPeakBytes int64 `json:"memory_peak_bytes,omitempty"`
}

// ExecFailed says that the agent never executed.
type ExecFailed struct {
	Step     string        `json:"step"`      // "rlimit nofile", "chdir", "execve", …
	Errno    syscall.Errno `json:"errno"`     // 0: not the kernel's refusal
	Message  string        `json:"message"`   // for people, the errno's text included
	ExitCode int           `json:"exit_code"` // ExitNotFound, ExitCannotExec or ExitStartFailed
}

func (f *ExecFailed) Error() string { return f.Step + ": " + f.Message }

// Unwrap gives the errno, nil where the kernel refused nothing.
func (f *ExecFailed) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

// Exit codes of ExecFailed; the same numbers as in package agent.
const (
	ExitStartFailed = 125 // a step before the command's own
	ExitCannotExec  = 126 // found, not executable
	ExitNotFound    = 127
)

// Cause says what ended a run that did not end by itself.
type Cause string

// The causes.
const (
	CauseSelf     Cause = ""         // the agent ended, or a signal of others ended it
	CauseDeadline Cause = "deadline" // Orders.WallClock passed
	CauseLifeline Cause = "lifeline" // the supervisor's end of the socket closed
	CauseStop     Cause = "stop"     // a Stop message
)

// Exited says how the agent's first process ended and that no other is left.
type Exited struct {
	Code       int            `json:"code"`             // exit status; -1 when a signal ended it
	Signal     syscall.Signal `json:"signal,omitempty"` // 0: none
	CoreDumped bool           `json:"core_dumped,omitempty"`
	Cause      Cause          `json:"cause,omitempty"` // the first that happened
	WallNS     int64          `json:"wall_ns"`         // CLOCK_BOOTTIME, from Started to the first process's end
	// ExecutedNS is, as WallNS, when KILL had been sent to all, or nobody was left
	// before: nothing of the agent executes after that. The kernel can take longer
	// to clear away what KILL ended, and WallNS is then later. 0: it never executed.
	ExecutedNS int64 `json:"executed_ns"`
	// Leftover counts the processes, the first one aside, that KILL ended.
	// Those whose own parent reaped or ignored them are not seen.
	Leftover int `json:"leftover,omitempty"`
}

// kinds counts the fields that are set.
func (m Message) kinds() int {
	n := 0
	for _, set := range []bool{m.Orders != nil, m.Signal != nil, m.Stop != nil,
		m.Extend != nil, m.Extended != nil, m.Entered != nil, m.Started != nil, m.ExecFailed != nil, m.Exited != nil} {
		if set {
			n++
		}
	}
	return n
}

// Encode gives m's JSON, without the frame's length.
func Encode(m Message) ([]byte, error) {
	if n := m.kinds(); n != 1 {
		return nil, fmt.Errorf("cannot encode a message of %d kinds", n)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > MaxMessageBytes {
		return nil, fmt.Errorf("cannot encode message: %d bytes are more than %d", len(data), MaxMessageBytes)
	}
	return data, nil
}

// Decode reads what Encode wrote, and refuses everything else.
func Decode(data []byte) (Message, error) {
	var m Message
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("cannot decode message: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Message{}, errors.New("cannot decode message: bytes after its end")
	}
	if n := m.kinds(); n != 1 {
		return Message{}, fmt.Errorf("cannot decode a message of %d kinds", n)
	}
	return m, nil
}

// maxExitBytes is more than any last message: its one long field is a path.
const maxExitBytes = 64 << 10

// ReadExit reads an exit file. It returns io.EOF for an empty one, which
// clove-init leaves when it is killed.
func ReadExit(r io.Reader) (Message, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxExitBytes))
	if err != nil {
		return Message{}, fmt.Errorf("cannot read exit file: %w", err)
	}
	if len(data) == 0 {
		return Message{}, io.EOF
	}
	m, err := Decode(data)
	if err == nil && m.ExecFailed == nil && m.Exited == nil {
		err = errors.New("cannot read exit file: not a last message")
	}
	return m, err
}
