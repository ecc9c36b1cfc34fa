package control

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/tools/link"
)

// program is installed beside clove-gate.
const program = "clove-mcp"

// Users of the processes (keep.Launcher.Numbers): the numbers are no process's of package models.
const numbers = 3000

// Options are what a Control works with.
type Options struct {
	// Programs returns the directory of clove-mcp.
	Programs func() (string, error)
	// Calls answers what comes on a channel as calls of a run's agent, until ctx ends or the other side
	// is gone. The channel stays the caller's.
	Calls func(ctx context.Context, run agent.ID, calls *channel.Conn)
	Log   *slog.Logger
}

// Control has the doors of runs served. Its methods may be called from many goroutines.
type Control struct {
	options  Options
	launcher *keep.Launcher
	pause    time.Duration // the least from the start of one clove-mcp to that of the next
	linger   time.Duration // how long one without a run stays
	pool     keep.Pool
	doors    map[uint32]*door // by owner; the pool guards it
	calls    sync.WaitGroup   // channels whose calls are answered

	mu   sync.Mutex // guards runs
	runs map[agent.ID]*served
}

// served is a run that is served.
type served struct {
	ctx      context.Context // ends with the run
	run      agent.Run
	listener *os.File
}

// door is one clove-mcp.
type door struct {
	*keep.Process
	uid uint32 // of the owner whose runs it serves
}

// New makes a Control, which starts nothing before the first run.
func New(o Options) *Control {
	return &Control{options: o, launcher: &keep.Launcher{Programs: o.Programs, Spawn: keep.Spawn, Numbers: numbers}, pause: time.Second, linger: 10 * time.Second,
		doors: map[uint32]*door{}, runs: map[agent.ID]*served{}}
}

// ServeTools has a run's door served at a listener, which it takes over, until ctx ends.
func (c *Control) ServeTools(ctx context.Context, run agent.Run, listener *os.File) error {
	s := &served{ctx, run, listener}
	d, err := c.get(run.Owner.UID)
	if err == nil {
		c.add(s)
		err = c.pass(d, s)
	}
	if err != nil {
		c.remove(s)
		listener.Close()
		return err
	}
	context.AfterFunc(ctx, func() { c.leave(s) })
	return nil
}

// add has a run served, in the place of its start before.
func (c *Control) add(s *served) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[s.run.Spec.ID] = s
}

// remove reports whether the run was served by s: it may have started again.
func (c *Control) remove(s *served) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.runs[s.run.Spec.ID] == s
	if current {
		delete(c.runs, s.run.Spec.ID)
	}
	return current
}

// of are the runs of an owner.
func (c *Control) of(uid uint32) (all []*served) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.runs {
		if s.run.Owner.UID == uid {
			all = append(all, s)
		}
	}
	return all
}

// pass has a clove-mcp serve a run.
func (c *Control) pass(d *door, s *served) error {
	own, theirs, err := channel.Pair()
	if err != nil {
		return err
	}
	err = d.Conn.Send(link.ToDoor{Serve: &link.Serve{Name: string(s.run.Spec.ID), Title: s.run.Spec.Name, Kernel: true}}, s.listener, theirs)
	theirs.Close()
	if err != nil {
		own.Close()
		return err
	}
	c.calls.Go(func() {
		defer own.Close()
		c.options.Calls(s.ctx, s.run.Spec.ID, own)
	})
	return nil
}

// leave has a run served no longer.
func (c *Control) leave(s *served) {
	defer s.listener.Close()
	if !c.remove(s) {
		return
	}
	uid := s.run.Owner.UID
	c.pool.Lock()
	d := c.doors[uid]
	c.pool.Unlock()
	if d == nil {
		return
	}
	_ = d.Conn.Send(link.ToDoor{Leave: string(s.run.Spec.ID)}) // a process that is gone serves none
	if len(c.of(uid)) == 0 {
		time.AfterFunc(c.linger, func() { c.retire(d) })
	}
}

// retire ends a clove-mcp whose owner has no run.
func (c *Control) retire(d *door) {
	c.pool.Lock()
	defer c.pool.Unlock()
	if c.doors[d.uid] != d || len(c.of(d.uid)) > 0 {
		return
	}
	delete(c.doors, d.uid)
	go d.End()
}

// get returns the clove-mcp of an owner.
func (c *Control) get(uid uint32) (*door, error) {
	return keep.Obtain(&c.pool, func() *door {
		if d := c.doors[uid]; d != nil && !d.Ended() {
			return d
		}
		return nil
	}, func() (*door, error) {
		p, err := c.launcher.Start(program)
		if err != nil {
			return nil, err
		}
		return &door{p, uid}, nil
	}, func(d *door) {
		c.doors[uid] = d
		go c.watch(d)
	})
}

// watch waits for a clove-mcp's end, and replaces it.
func (c *Control) watch(d *door) {
	for {
		var m link.FromDoor
		files, err := d.Conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none, and nothing after its first message
		if err != nil {
			break
		}
	}
	d.End()
	time.Sleep(c.pause - time.Since(d.Started))
	if c.drop(d) {
		c.replace(d)
	}
}

// drop forgets a clove-mcp that has ended. It reports whether runs may need another.
func (c *Control) drop(old *door) bool {
	c.pool.Lock()
	defer c.pool.Unlock()
	if c.pool.Closed() || c.doors[old.uid] != old {
		return false
	}
	delete(c.doors, old.uid)
	return true
}

// replace starts another clove-mcp for the runs of one that has ended.
func (c *Control) replace(old *door) {
	for _, s := range c.of(old.uid) {
		c.options.Log.Warn("clove-mcp has ended and is replaced", "owner", old.uid, "reason", old.Reason())
		d, err := c.get(old.uid)
		if err == nil {
			err = c.pass(d, s)
		}
		switch {
		case s.ctx.Err() != nil: // it has left
			if err == nil {
				_ = d.Conn.Send(link.ToDoor{Leave: string(s.run.Spec.ID)})
			}
		case err != nil:
			c.options.Log.Error("a run has no door to tools any more", "run", s.run.Spec.ID, "error", err)
		}
	}
}

// Close ends all processes, and waits until the calls that came from them have ended.
func (c *Control) Close() error {
	c.pool.Lock()
	c.pool.Close()
	doors := c.doors
	c.doors = map[uint32]*door{}
	c.pool.Unlock()
	for _, d := range doors {
		d.End()
	}
	c.calls.Wait()
	return nil
}
