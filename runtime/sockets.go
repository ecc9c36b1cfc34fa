package runtime

import (
	"context"
	"errors"
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

// watchSockets sends what the sandbox's sockets hold, at each look that found
// something. It lets go of the namespace before it closes looked, which
// it does after ctx is done.
func (l *launch) watchSockets(ctx context.Context, looked chan<- struct{}) (<-chan int64, error) {
	if _, asked := l.held.enforced[agent.ControlSockets]; !asked {
		close(looked)
		return nil, nil
	}
	queues, err := netns.OpenQueues(l.box.pid)
	if err == nil {
		_, err = queues.Bytes() // one that cannot be read holds nothing
	}
	if err != nil {
		close(looked)
		return nil, errors.Join(err, queues.Close())
	}
	found := make(chan int64)
	go func() {
		defer close(looked)
		defer queues.Close()
		l.lookAtSockets(ctx, queues, found)
	}()
	return found, nil
}

func (l *launch) lookAtSockets(ctx context.Context, queues *netns.Queues, found chan<- int64) {
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
		if held := l.heldInBuffers() + heldInQueues(queues); held > 0 {
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
