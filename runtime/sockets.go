package runtime

import (
	"context"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/netns"
)

// Socket buffers are memory of the host's. On v2 the kernel charges the buffers
// of TCP and UDP to the agent; on v1 it only counts them, with a limit of their
// own that many connections go beyond. The queue of a netlink socket it neither
// charges nor counts. There is no event for either, so both are watched.

// limitSockets bounds the buffers of TCP and UDP on v1, before the agent makes
// the first socket: at half of what ends it, so that an agent that reaches only
// this bound goes on.
func limitSockets(group *cgroups.Group, limits agent.Limits, held enforcement, f *probes) error {
	if held.lacks(agent.ControlMemory) || !f.cgroups.CountsSockets() {
		return nil
	}
	return group.LimitSockets(limits.SocketBytes() / 2)
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

// socketWatch looks at what the sandbox's sockets hold.
type socketWatch struct {
	group  *cgroups.Group
	queues *netns.Queues
}

// openSocketWatch opens what is watched while clove-init waits for its orders: as
// soon as the agent runs it may end, and pid's place in /proc is gone. The queues
// keep the network namespace until close.
func openSocketWatch(group *cgroups.Group, pid int) (*socketWatch, error) {
	queues, err := netns.OpenQueues(pid)
	if err != nil {
		return nil, err
	}
	if _, err = queues.Bytes(); err != nil { // queues that cannot be read limit nothing
		return nil, errors.Join(err, queues.Close())
	}
	return &socketWatch{group, queues}, nil
}

func (w *socketWatch) close() error { return w.queues.Close() }

// start sends what the sandbox's sockets hold, at each look that found something. It has
// looked for the last time when it closes looked, after ctx is done. The caller waits for
// looked before it closes the queues.
func (w *socketWatch) start(ctx context.Context, looked chan<- struct{}) <-chan int64 {
	if w == nil {
		close(looked)
		return nil
	}
	found := make(chan int64)
	go func() {
		defer close(looked)
		w.look(ctx, found)
	}()
	return found
}

func (w *socketWatch) look(ctx context.Context, found chan<- int64) {
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
		used, err := w.group.CPUTime()
		if held := w.heldInBuffers() + heldInQueues(w.queues); held > 0 {
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

// heldInBuffers is 0 where they are memory. A failed read is tried again.
func (w *socketWatch) heldInBuffers() int64 {
	held, err := w.group.SocketBytes()
	if err != nil {
		return 0
	}
	return held
}

// heldInQueues looks twice at queues that are not empty: while the kernel moves its
// table of sockets to a larger one, a look may count some of them twice. A
// failed read is tried again.
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
