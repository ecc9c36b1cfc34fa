package runtime

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
)

// outcome is what the supervisor saw. One pure function, judge, turns it into
// the record's ending, so that every ending can be tested as a table row.
type outcome struct {
	terminal   *terminal // to be given back when the output is drained; nil: none
	cause      cause     // what clove itself did to end the run, first one only
	code       int       // the agent's exit code, when it exited
	signal     int       // the signal that ended it; 0: it exited
	exitKnown  bool      // clove-init reported how the agent ended
	startError error     // a launch step failed
	execFailed *execFailure
	launched   bool // the agent executed
	oomKills   int64
	below      bool            // the agent's own memory limit was not what had no more
	inTree     bool            // the limit of a tree above had no more
	parent     string          // name of the run that started it; empty: a person did
	bound      *time.Duration  // from its start to its deadline, which ended it; nil: that did not
	diskFull   *agent.LimitHit // what the writable layer had none left of at the end; nil: enough of all
	wall       time.Duration
	executed   *time.Duration  // nothing of the agent executed after this; nil: unknown
	cpu        *time.Duration  // the agent's own
	spent      initproto.Spent // the launch's; all that was counted, if the agent never executed
	output     int64
	reason     string          // of causePolicy, and of causeBudget by a signal; empty: what the run says of refusals
	budget     *agent.LimitHit // the dimension of which nothing was left
	sockets    int64           // bytes that sockets held beside memory, when they were too many
	memoryPeak *int64
	diskUsed   *int64
}

// cause says which rule made clove end the run.
type cause string

const (
	causeNone     cause = ""
	causeDeadline cause = "deadline"
	causeCPUTime  cause = "cpu-time"
	causeOutput   cause = "output"
	causeSockets  cause = "sockets"
	causeBudget   cause = "budget"
	causePolicy   cause = "policy"   // what the run says of refusals, or the signal POLICY
	causeUser     cause = "user"     // asked to stop
	causeLifeline cause = "lifeline" // the supervisor is gone
	causeParent   cause = "parent"   // the run that started it has ended
	causeIdle     cause = "idle"     // its agent has only waited
)

// execFailure describes a command that clove-init could not execute.
type execFailure struct {
	step, message string
	errno         unix.Errno
	exitCode      int // 126 or 127
}

// ending is the part of the record that says how a run ended and why.
type ending struct {
	status   agent.Status
	exitCode int
	signal   *string
	limit    *agent.LimitHit
	failure  *agent.Failure
}

// judge attributes the end: what clove did comes first, then what the kernel's own counters
// say, then what the agent itself returned. Decision 9 (docs/decisions) has the reasons.
func judge(limits agent.Limits, o outcome) ending {
	switch {
	// With a kill counted, the want of memory is why the start failed, and it is judged
	// below.
	case o.startError != nil && o.oomKills == 0:
		return unstarted(o.startError)
	case o.execFailed != nil:
		return execVerdict(*o.execFailed)
	case o.cause == causeDeadline && o.bound != nil:
		v := o.byLimit(agent.StatusTimeout, agent.ExitTimeout, agent.ControlWallClock, o.bound.Milliseconds(), millis(&o.wall))
		v.failure = &agent.Failure{Step: agent.StepDeadline, Message: "its deadline came: it ends no later than the run that started it"}
		return v
	case o.cause == causeParent:
		return o.byParent()
	case o.cause == causeDeadline:
		return o.byLimit(agent.StatusTimeout, agent.ExitTimeout, agent.ControlWallClock, limits.WallClock.Milliseconds(), millis(&o.wall))
	case o.cause == causeCPUTime:
		return o.byLimit(agent.StatusCPUTime, agent.ExitTimeout, agent.ControlCPUTime, limits.CPUTime.Milliseconds(), millis(o.cpu))
	case o.cause == causeOutput:
		return o.byLimit(agent.StatusOutputLimit, agent.ExitKilled, agent.ControlOutput, limits.OutputBytes, &o.output)
	case o.cause == causeSockets:
		return o.byLimit(agent.StatusOOM, agent.ExitKilled, agent.ControlSockets, limits.SocketBytes(), &o.sockets)
	case o.cause == causeBudget:
		v := o.byLimit(agent.StatusBudget, agent.ExitKilled, o.budget.Name, o.budget.Value, o.budget.Peak)
		v.limit = o.budget
		v.failure = o.given("budget")
		return v
	case o.cause == causePolicy:
		return o.byPolicy()
	case o.cause == causeIdle:
		return o.byIdle()
	// After the causes above: a limit that clove enforced first ended the run, whatever the
	// kernel killed on the way.
	case o.oomKills > 0 && o.below && o.inTree:
		return o.byLimit(agent.StatusOOM, agent.ExitKilled, agent.LimitTreeMemory, limits.MemoryBytes, o.memoryPeak)
	case o.oomKills > 0 && o.below:
		return o.byLimit(agent.StatusOOM, agent.ExitKilled, agent.LimitHostMemory, limits.MemoryBytes, o.memoryPeak)
	case o.oomKills > 0:
		return o.byLimit(agent.StatusOOM, agent.ExitKilled, agent.ControlMemory, limits.MemoryBytes, o.memoryPeak)
	case o.cause == causeUser && o.exitKnown && o.signal != int(unix.SIGKILL):
		// It was asked to end and did, within its grace: its own exit code counts.
		return o.own()
	case o.cause == causeUser, o.cause == causeLifeline, !o.exitKnown:
		return ending{status: agent.StatusKilled, exitCode: agent.ExitKilled, signal: signalName(int(unix.SIGKILL))}
	}
	return o.own()
}

// unstarted is the end of a run whose start failed: at its deadline it ends as one that runs does, without a limit
// that the agent could have reached.
func unstarted(err error) ending {
	v := ending{status: agent.StatusStartFailed, exitCode: agent.ExitStartFailed, failure: agent.FailureOf(err)}
	if v.failure.Step == agent.StepDeadline {
		v.status, v.exitCode = agent.StatusTimeout, agent.ExitTimeout
	}
	return v
}

// byLimit is the end of a run that hit a limit: the limit's own exit code, whatever the
// agent returned when it was asked to end.
func (o outcome) byLimit(status agent.Status, code int, name string, value int64, peak *int64) ending {
	v := ending{status: status, exitCode: code, limit: &agent.LimitHit{Name: name, Value: value, Peak: peak}}
	switch {
	case o.signal != 0:
		v.signal = signalName(o.signal)
	case !o.exitKnown:
		// clove-init died before it could report: all were killed at once.
		v.signal = signalName(int(unix.SIGKILL))
	}
	return v
}

// byPolicy is the end by a refusal, or by a user with a reason.
func (o outcome) byPolicy() ending {
	v := ending{status: agent.StatusPolicyKill, exitCode: agent.ExitKilled, signal: signalName(int(unix.SIGKILL))}
	v.failure = o.given("policy")
	return v
}

// byIdle is the end of a run whose agent had only waited. It is no failure, whatever the agent returned when it was
// asked to end.
func (o outcome) byIdle() ending {
	v := ending{status: agent.StatusIdle, failure: o.given("idle")}
	if o.signal != 0 || !o.exitKnown {
		v.signal = signalName(cmp.Or(o.signal, int(unix.SIGKILL)))
	}
	return v
}

// given is the reason of a user or a parent that has ended the run; nil: none.
func (o outcome) given(step string) *agent.Failure {
	if o.reason == "" {
		return nil
	}
	return &agent.Failure{Step: step, Message: o.reason}
}

// byParent is the end of a run with the one that started it.
func (o outcome) byParent() ending {
	return ending{status: agent.StatusKilled, exitCode: agent.ExitKilled, signal: signalName(int(unix.SIGKILL)),
		failure: &agent.Failure{Step: agent.StepParent, Message: "its parent " + o.parent + " ended"}}
}

// own is the end that the agent chose; a full disk is named when it failed. A program that
// found the disk full and still succeeded did not fail because of it.
func (o outcome) own() ending {
	v := ending{status: agent.StatusExited, exitCode: o.code}
	if o.signal != 0 {
		v.status, v.exitCode, v.signal = agent.StatusSignaled, agent.ExitSignalBase+o.signal, signalName(o.signal)
	}
	if o.diskFull != nil && v.exitCode != 0 {
		v.status, v.limit = agent.StatusDiskFull, o.diskFull
	}
	return v
}

func execVerdict(f execFailure) ending {
	failure := &agent.Failure{Step: f.step, Message: f.message, Hint: hintFor(f)}
	if f.errno != 0 {
		failure.Errno = f.errno.Error()
	}
	return ending{status: agent.StatusStartFailed, exitCode: f.exitCode, failure: failure}
}

// hintFor suggests a remedy for a command that did not execute.
func hintFor(f execFailure) string {
	step, _, _ := strings.Cut(f.step, " ")
	switch {
	case f.exitCode != agent.ExitStartFailed:
		return "the command is looked up inside the sandbox: `clove run -- ls -l /usr/bin` shows what is there"
	case step == "chdir":
		return "--workdir names a directory inside the sandbox: `clove run -- ls -l /` shows what is there"
	case step == "rlimit":
		return "ask for less with --ulimit"
	}
	return "`clove doctor` shows what this host lacks; a --pids-limit or --memory of almost nothing can be the reason too"
}

func signalName(n int) *string {
	name := unix.SignalName(unix.Signal(n))
	if name == "" {
		name = fmt.Sprintf("SIG%d", n) // a real-time signal
	}
	return &name
}

// roundedUp is for a bound, which a part of a millisecond less would break.
func roundedUp(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := (*d + time.Millisecond - 1).Milliseconds()
	return &ms
}

func millis(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// add notes what clove-init reported of the end, on its socket or in its exit file.
func (o *outcome) add(m initproto.Message) {
	if f := m.ExecFailed; f != nil {
		o.execFailed = &execFailure{step: f.Step, message: f.Message, errno: f.Errno, exitCode: f.ExitCode}
	}
	if m.Exited == nil {
		return
	}
	o.exitKnown = true
	o.code, o.signal, o.wall = m.Exited.Code, int(m.Exited.Signal), time.Duration(m.Exited.WallNS)
	switch m.Exited.Cause {
	case initproto.CauseDeadline:
		o.blame(causeDeadline)
	case initproto.CauseLifeline:
		o.blame(causeLifeline)
	case initproto.CauseStop:
		o.blame(causeUser)
	}
}

// blame notes why the run ends; the first cause stays.
func (o *outcome) blame(c cause) {
	if o.cause == causeNone {
		o.cause = c
	}
}

// blameBudget notes the dimension that ended the run, if nothing else did before.
func (o *outcome) blameBudget(hit agent.LimitHit) {
	if o.cause == causeNone {
		o.budget = &hit
	}
}

// launchUse is the CPU time that the launch used in the agent's cgroup: libcontainer and
// clove-init run there before the agent, and what they use until its execve is no part of
// the agent's.
func launchUse(s initproto.Spent) cgroups.CPUUse {
	return cgroups.CPUUse{Total: time.Duration(s.CPUNS), User: time.Duration(s.CPUUserNS), System: time.Duration(s.CPUSystemNS)}
}

// spentAll is for an agent that never executed: all that was counted is the
// launch's.
func spentAll(s cgroups.Stats) initproto.Spent {
	return initproto.Spent{CPUNS: int64(orZero(s.CPU)), CPUUserNS: int64(orZero(s.CPUUser)),
		CPUSystemNS: int64(orZero(s.CPUSystem)), MemoryPeakBytes: orZero(s.MemoryPeakBytes)}
}

func orZero[N ~int64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}

// positive is nil for 0, which means an unknown figure.
func positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}
