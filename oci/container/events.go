package container

import (
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/sirupsen/logrus"
)

// Event is one line of the events command.
type Event struct {
	Type string `json:"type"` // stats or oom
	ID   string `json:"id"`
	Data any    `json:"data,omitempty"` // of stats: numbers of the container's cgroups, in runc's form
}

// Pids are the processes in the container's cgroup and below it, as the host counts them. A
// container without any is no error.
func (c *Container) Pids() ([]int, error) { return c.lib.Processes() }

// Pause stops every process of the container until Resume, with the cgroup's
// freezer. ErrNotRunning: it has none, or is paused already.
func (c *Container) Pause() error { return c.lib.Pause() }

// Resume thaws the container's processes. It is an error for a container that is not
// paused.
func (c *Container) Resume() error { return c.lib.Resume() }

// Stats is what the container has used so far, in the units of runc's events (CPU time in
// nanoseconds, memory in bytes). It is an error for a container that has ended.
func (c *Container) Stats() (Event, error) {
	if err := c.checkAlive(); err != nil {
		return Event{}, err
	}
	return c.stats()
}

// checkAlive has the message that runc's events gives for a stopped container.
func (c *Container) checkAlive() error {
	status, err := c.lib.Status()
	if err == nil && status == libcontainer.Stopped {
		err = fmt.Errorf("container with id %s is not running", c.lib.ID())
	}
	return err
}

// Follow calls emit with the container's usage after each interval, and with an oom event
// each time that the kernel kills a process of it for lack of memory. It returns when the
// container ends, ctx ends, or emit fails; only the last is an error. interval must be
// positive.
func (c *Container) Follow(ctx context.Context, interval time.Duration, emit func(Event) error) error {
	if err := c.checkAlive(); err != nil {
		return err
	}
	// The container may end between the first check and the subscription, whose error then
	// means nothing.
	ooms, err := c.lib.NotifyOOM()
	if c.checkAlive() != nil {
		return nil // an end before the watch is not reported
	}
	if err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		event := Event{Type: "oom", ID: c.lib.ID()}
		select {
		case <-ctx.Done():
			return nil
		case _, alive := <-ooms:
			if !alive {
				return nil
			}
		case <-ticker.C:
			if event, err = c.stats(); err != nil {
				if c.checkAlive() != nil {
					return nil // cgroup v2 reports no end if the cgroup is removed at once
				}
				logrus.Error(err) // a single failure does not end the command
				continue
			}
		}
		if err := emit(event); err != nil {
			return err
		}
	}
}

func (c *Container) stats() (Event, error) {
	found, err := c.lib.Stats()
	if err != nil {
		return Event{}, err
	}
	event := Event{Type: "stats", ID: c.lib.ID()}
	if found.CgroupStats != nil {
		stats := statsOf(found.CgroupStats)
		stats.IntelRdt = rdtStatsOf(found.IntelRdtStats)
		stats.NetworkInterfaces = found.Interfaces
		event.Data = stats
	}
	return event, nil
}
