package runtime

import (
	"context"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/netns"
)

// What sockets hold is memory of the host's. On v2 the kernel charges the buffers
// of TCP and UDP to the agent; on v1 it only counts them, with a limit of their
// own that many connections go beyond. What waits in a netlink socket it neither
// charges nor counts. There is no event for either, so both are watched.

// limitSockets bounds the buffers of TCP and UDP on v1, before the agent makes
// the first socket: at half of what ends it, so that who meets only this goes on.
func (l *launch) limitSockets(limits agent.Limits) error {
	if l.held.lacks(agent.ControlMemory) || !l.facts.cgroups.CountsSockets() {
		return nil
	}
	return l.group.LimitSockets(limits.SocketBytes() / 2)
}

// Between two looks an agent can fill queues at the speed of its processors,
// about a gigabyte a second each. One that has used no CPU time has filled none.
const (
	socketsBusy = 250 * time.Millisecond
	socketsIdle = time.Second
	// socketsShare bounds the time spent looking to one part in so many: the
	// kernel walks all netlink sockets of the host for each look.
	socketsShare = 20
)

// openQueues opens what watchSockets looks at while clove-init waits for its orders:
// an agent may have ended, and its place in /proc gone, as soon as it was told to begin.
// The queues keep the namespace until the launch is taken back.
func (l *launch) openQueues() error {
	if _, asked := l.held.enforced[agent.ControlSockets]; !asked {
		return nil
	}
	queues, err := netns.OpenQueues(l.box.pid)
	if err != nil {
		return err
	}
	l.queues = queues
	l.undo.Add("netlink sockets", queues.Close)
	_, err = queues.Bytes() // one that cannot be read holds nothing
	return err
}

// watchSockets sends what the sandbox's sockets hold, at each look that found
// something. It has looked for the last time when it closes looked, after ctx is done.
func (l *launch) watchSockets(ctx context.Context, looked chan<- struct{}) <-chan int64 {
	if l.queues == nil {
		close(looked)
		return nil
	}
	found := make(chan int64)
	go func() {
		defer close(looked)
		l.lookAtSockets(ctx, found)
	}()
	return found
}

func (l *launch) lookAtSockets(ctx context.Context, found chan<- int64) {
	timer := time.NewTimer(socketsBusy)
	defer timer.Stop()
	var before time.Duration
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		used, err := l.group.CPUTime()
		if held := l.heldInBuffers() + heldInQueues(l.queues); held > 0 {
			select {
			case found <- held:
			case <-ctx.Done():
				return
			}
		}
		wait := socketsBusy
		if err == nil && used == before {
			wait = socketsIdle
		}
		before = used
		timer.Reset(max(wait, socketsShare*time.Since(began)))
	}
}

// heldInBuffers is 0 where they are memory. What cannot be read is tried again.
func (l *launch) heldInBuffers() int64 {
	held, err := l.group.SocketBytes()
	if err != nil {
		return 0
	}
	return held
}

// heldInQueues looks twice at queues that are not empty: while the kernel moves its
// table of sockets to a larger one, a look may count some of them twice. What
// cannot be read is tried again.
func heldInQueues(queues *netns.Queues) int64 {
	held, err := queues.Bytes()
	if held == 0 || err != nil {
		return 0
	}
	again, err := queues.Bytes()
	if err != nil {
		return 0
	}
	return min(held, again)
}

// checkSockets ends an agent whose sockets hold more than their share.
func (s *supervisor) checkSockets(held int64) {
	if held > s.spec.Limits.SocketBytes() && s.seen.cause == causeNone {
		s.seen.sockets = held
		s.end(causeSockets, 0)
	}
}
