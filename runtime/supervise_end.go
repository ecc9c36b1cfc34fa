package runtime

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// lastResort is how long after clove-init's own deadline and grace clove
// itself kills the cgroup: only if clove-init did not.
const lastResort = 2 * time.Second

// end stops the agent for a cause: TERM and a grace, or KILL at once. clove-init
// holds the grace, and clove from outside where that one cannot.
func (s *supervisor) end(c cause, grace time.Duration) {
	s.seen.blame(c)
	if grace <= 0 {
		s.killNow()
		return
	}
	// A frozen clove-init would not read it.
	if s.send(initproto.Message{Stop: &initproto.Stop{Grace: grace}}) != nil || s.freezer.thaw() != nil {
		s.killNow()
		return
	}
	s.beginGrace(grace)
}

// terminate passes a TERM on to the agent's first process, and begins the grace: unlike
// stop, it leaves the other processes to that one. clove-init is not asked, so that the
// first process's end still ends the others at once; the end of the grace is clove's own.
func (s *supervisor) terminate() {
	grace := s.spec.Limits.StopGrace
	s.seen.blame(causeUser)
	if grace <= 0 || s.forward(unix.SIGTERM) != nil || s.freezer.thaw() != nil {
		s.killNow()
		return
	}
	s.beginGrace(grace)
}

// beginGrace sets the moment at which everything is killed. A second request can only bring
// it nearer.
func (s *supervisor) beginGrace(grace time.Duration) {
	if over := time.Now().Add(grace); s.graceEnd.IsZero() || over.Before(s.graceEnd) {
		s.graceEnd = over
	}
	s.setDeadline()
}

// sendPatience is more than clove-init's socket needs for a few bytes. If clove-init
// is frozen its socket may be full, and all that the loop does would wait for it.
const sendPatience = 100 * time.Millisecond

func (s *supervisor) send(m initproto.Message) error {
	return s.conn.SendWithin(sendPatience, m)
}

// setDeadline arms clove's own clocks: for the wall clock's current limit, and for a stop
// whose grace is over sooner. clove-init enforces both by itself; these are for when it
// cannot:
//
// due: the wall clock is over. A frozen agent is thawed, so that clove-init can act.
//
// over: the grace is over too. Every process but clove-init is killed, in case clove-init
// gets no CPU time under the agent's own limit.
//
// last: lastResort later. clove-init is killed with whatever is left.
func (s *supervisor) setDeadline() {
	for _, timer := range []*time.Timer{s.due, s.over, s.last} {
		timer.Stop()
	}
	limits := s.spec.Limits
	left, bounded := time.Until(s.graceEnd), !s.graceEnd.IsZero()
	if s.began != 0 && limits.WallClock != 0 {
		due := limits.WallClock - time.Duration(boottime.NowNS()-s.began)
		s.due.Reset(due)
		if over := due + limits.StopGrace; !bounded || over < left {
			left, bounded = over, true
		}
	}
	if bounded {
		s.over.Reset(left)
		s.last.Reset(left + lastResort)
	}
}

// checkCPU compares the tree's CPU time with its limit, and otherwise looks
// again when the limit could be reached at the earliest. The kernel has no
// event for it.
func (s *supervisor) checkCPU() {
	used, err := s.group.CPUTime()
	if err != nil {
		return // the cgroup is going: so is the agent
	}
	own := used - launchUse(s.seen.spent).Total
	s.seen.cpu = &own
	left := s.spec.Limits.CPUTime - own
	if left <= 0 {
		s.end(causeCPUTime, s.spec.Limits.StopGrace)
		return
	}
	s.cpu.Reset(s.untilCPULimit(left))
}

// untilCPULimit is the time in which the agent can use up left on all of its
// CPUs, and not less than a scheduling period.
func (s *supervisor) untilCPULimit(left time.Duration) time.Duration {
	cpus := float64(onlineCPUs())
	if limit := s.spec.Limits.CPUs; limit > 0 {
		cpus = min(cpus, limit)
	}
	return max(time.Duration(float64(left)/cpus), 10*time.Millisecond)
}

// killNow kills without asking, and notes that nothing executes any more. A kill that fails, as where the
// host has no descriptor or memory left for it, is repeated until clove-init is gone: nothing else would
// end the agent.
func (s *supervisor) killNow() {
	if killAll(s.group) != nil {
		s.again.Reset(lastResort)
		return
	}
	s.noteExecuted(time.Duration(boottime.NowNS() - s.began))
}

// killAgent kills what clove-init is about to kill as well, but clove-init
// shares its CPU limit with the agent, which may leave it little. It stays alive
// and reports how the agent ended.
func (s *supervisor) killAgent() {
	if s.group.KillBut(s.box.pid) == nil {
		s.noteExecuted(time.Duration(boottime.NowNS() - s.began))
	}
}

// noteExecuted keeps the earliest moment after which nothing executed.
func (s *supervisor) noteExecuted(d time.Duration) {
	if s.began != 0 && d > 0 && (s.seen.executed == nil || d < *s.seen.executed) {
		s.seen.executed = &d
	}
}

// killTimeout bounds the wait for processes that the kernel cannot end at once.
const killTimeout = 20 * time.Second

// killAll kills every process in the agent's cgroup. It works at any stage of
// the launch and does not depend on clove-init.
func killAll(group *cgroups.Group) error {
	if group == nil {
		return nil // libcontainer has killed what it started
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := group.Kill(ctx)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// checkSockets ends an agent whose sockets hold more than their share.
func (s *supervisor) checkSockets(held int64) {
	if held > s.spec.Limits.SocketBytes() && s.seen.cause == causeNone {
		s.seen.sockets = held
		s.end(causeSockets, 0)
	}
}

// killInside kills what is in an agent's cgroup, and waits a second at most: what is
// left is noted. It uses nothing that a step under way may be changing.
func killInside(paths map[string]string) {
	group, err := cgroups.Open(paths)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), letGoTime)
	defer cancel()
	_ = group.Kill(ctx)
}

// letGoTime is the time that a start which is given up gets to return by itself, and again
// after everything that it has started was killed.
const letGoTime = time.Second
