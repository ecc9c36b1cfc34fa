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

// MaxMessageBytes bounds the JSON of one frame. execve(2) accepts at most 6 MiB of
// arguments and environment (three quarters of the kernel's _STK_LIM), which base64 turns
// into 8 MiB. The rest of the orders is far below the additional half MiB.
const MaxMessageBytes = 8<<20 + 512<<10

// Message is one frame: exactly one field is set.
type Message struct {
	Orders     *Orders     `json:"orders,omitempty"`
	Signal     *Signal     `json:"signal,omitempty"`
	Stop       *Stop       `json:"stop,omitempty"`
	Extend     *Extend     `json:"extend,omitempty"`
	Extended   *Extended   `json:"extended,omitempty"`
	Entered    *Entered    `json:"entered,omitempty"`
	Filtered   *Filtered   `json:"filtered,omitempty"`
	Started    *Started    `json:"started,omitempty"`
	ExecFailed *ExecFailed `json:"exec_failed,omitempty"`
	Exited     *Exited     `json:"exited,omitempty"`
}

// Signal forwards a signal. Those that a terminal generates (HUP INT QUIT TSTP CONT WINCH)
// go to the agent's process group, as the terminal would send them, all others to the
// agent's first process. A signal that comes before the agent executes is sent afterwards.
type Signal struct {
	Number syscall.Signal `json:"number"`
}

// Stop ends the agent: Orders.StopSignal (and SIGCONT) to every process, and SIGKILL to
// those that are left after Grace. A second Stop can only shorten the grace period.
type Stop struct {
	Grace time.Duration `json:"grace_ns"`
}

// Extend changes the wall clock limit, counted from Started; 0 removes it. The answer is Extended.
type Extend struct {
	WallClock time.Duration `json:"wall_clock_ns"`
}

// Extended answers Extend. If it is not Accepted nothing has changed: the time has passed
// already, or the agent is being ended.
type Extended struct {
	WallClock time.Duration `json:"wall_clock_ns"` // as requested
	Accepted  bool          `json:"accepted"`
}

// EnterArgument starts clove-init as a second stage in an existing sandbox, for a process
// of clove exec. It sends Entered and then receives orders.
const EnterArgument = "enter"

// StageEnv is for Go's runtime in a second stage, which lives for a millisecond: no
// collection, and a processor for each of its two threads that work, of which one may be
// in a system call that the runtime knows nothing of.
var StageEnv = []string{"GOMAXPROCS=2", "GOGC=off"}

// Entered says that a second stage is in the sandbox and waits for its orders. It has
// everything of the agent's except ids and limits.
type Entered struct{}

// Filtered says that the thread that becomes the agent is under its filter, and waits in
// prctl(GateOption). It executes nothing before the holder of the listener has answered that call.
type Filtered struct {
	// Listener gets the calls that the filter hands over (seccomp_unotify(2)); nil: this
	// kernel has none, nothing waits, and the filter refuses by itself. The receiver owns it.
	Listener *os.File `json:"-"`
}

// GateOption is no option of prctl(2). A reporting filter hands the call to its listener, so
// a thread that may make no other call can still wait for the supervisor.
const GateOption = 0x2c10_4e00

// Started says that the agent executes.
type Started struct {
	PID        int   `json:"pid"`          // inside the sandbox
	BootTimeNS int64 `json:"boot_time_ns"` // CLOCK_BOOTTIME; the wall clock counts from here
	Spent      Spent `json:"spent"`
	// Terminal is the pty's master, nil without a terminal. The receiver owns it.
	Terminal *os.File `json:"-"`
}

// Spent is what the sandbox's cgroup had counted just before the agent's execve, that is,
// the launch's usage. 0: this kernel does not count it.
type Spent struct {
	CPUNS           int64 `json:"cpu_ns,omitempty"`
	CPUUserNS       int64 `json:"cpu_user_ns,omitempty"` // may not add up with CPUSystemNS to CPUNS: v1 samples the two
	CPUSystemNS     int64 `json:"cpu_system_ns,omitempty"`
	MemoryPeakBytes int64 `json:"memory_peak_bytes,omitempty"`
}

// ExecFailed says that the agent never executed.
type ExecFailed struct {
	Step     string        `json:"step"`      // "rlimit nofile", "chdir", "execve", …
	Errno    syscall.Errno `json:"errno"`     // 0: the kernel returned no error
	Message  string        `json:"message"`   // for people, the errno's text included
	ExitCode int           `json:"exit_code"` // ExitNotFound, ExitCannotExec or ExitStartFailed
}

func (f *ExecFailed) Error() string { return f.Step + ": " + f.Message }

// Unwrap returns the errno, nil if there is none.
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
	CauseSelf     Cause = ""         // the agent ended by itself, or by a signal from inside the sandbox
	CauseDeadline Cause = "deadline" // Orders.WallClock passed
	CauseLifeline Cause = "lifeline" // the supervisor's end of the socket closed
	CauseStop     Cause = "stop"     // a Stop message
)

// Exited says how the agent's first process ended, and that no other process is left.
type Exited struct {
	Code       int            `json:"code"`             // exit status; -1 when a signal ended it
	Signal     syscall.Signal `json:"signal,omitempty"` // 0: none
	CoreDumped bool           `json:"core_dumped,omitempty"`
	Cause      Cause          `json:"cause,omitempty"` // the first one
	WallNS     int64          `json:"wall_ns"`         // CLOCK_BOOTTIME, from Started to the first process's end
	// ExecutedNS is like WallNS, but ends when SIGKILL had been sent to all processes, or
	// when none was left before. Nothing of the agent executes after that. WallNS can be
	// later, because the kernel takes time to free what the processes held. 0: the agent
	// never executed.
	ExecutedNS int64 `json:"executed_ns"`
	// Leftover counts the processes that SIGKILL ended, without the first one. Processes
	// that their own parent reaped or ignored are not counted.
	Leftover int `json:"leftover,omitempty"`
}

// kinds counts the fields that are set.
func (m Message) kinds() int {
	n := 0
	for _, set := range []bool{m.Orders != nil, m.Signal != nil, m.Stop != nil,
		m.Extend != nil, m.Extended != nil, m.Entered != nil, m.Filtered != nil, m.Started != nil, m.ExecFailed != nil, m.Exited != nil} {
		if set {
			n++
		}
	}
	return n
}

// file is where a message has the descriptor that may travel with it; nil: with none.
func (m Message) file() **os.File {
	switch {
	case m.Started != nil:
		return &m.Started.Terminal
	case m.Filtered != nil:
		return &m.Filtered.Listener
	case m.Orders != nil:
		return &m.Orders.Ruleset
	}
	return nil
}

// Encode returns m's JSON, without the length prefix.
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

// Decode parses what Encode wrote, and rejects everything else.
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

// maxExitBytes is above any last message, whose only long field is a path.
const maxExitBytes = 64 << 10

// ReadExit reads an exit file. It returns io.EOF for an empty one, which a killed
// clove-init leaves.
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
