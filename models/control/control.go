package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/models/link"
)

// Control serves models to runs. Its methods may be called from many goroutines.
type Control struct {
	desk     *desk
	runs     *runs
	fronts   *fronts
	launcher *keep.Launcher
	held     heldBytes // bytes of contents in memory
}

// New makes a Control. No process is started before a run asks for models.
func New(o Options) *Control {
	l := &keep.Launcher{Programs: o.Programs, Journals: o.Journals, Spawn: keep.Spawn}
	d := &desk{Options: o, limits: limiters{maxWait: maxWait, all: map[string]*limiter{}}, settler: settler{o.Ledger, o.Called, o.Log},
		upstreams: &upstreams{launcher: l, config: o.Config, keys: keys{o.Secret, o.Secrets}, scripts: map[string]*keep.Process{}}}
	r := newRuns()
	return &Control{desk: d, runs: r, launcher: l,
		fronts: &fronts{launcher: l, desk: d, runs: r, places: maxFlying, pause: time.Second, all: map[uint32]*front{}}}
}

// Check rejects a run that names a model which its owner cannot call. What a pattern matches may come later.
func (c *Control) Check(k agent.Kernel, owner agent.Owner) error {
	return c.desk.Config().CheckGrants(k.Grants, owner.UID, groups(owner))
}

// Serve has a run's agent served on a listener, which becomes the Control's, until ctx ends.
// used returns what its calls have used, at the end of the agent.
func (c *Control) Serve(ctx context.Context, run agent.Run, listener *os.File) (used func() []agent.ModelUse, err error) {
	if err := c.Check(run.Spec.Kernel, run.Owner); err != nil {
		listener.Close()
		return nil, err
	}
	s := newServed(run, listener)
	if s.contents, err = openContents(run, c.desk.Contents, &c.held); err != nil {
		listener.Close()
		return nil, err
	}
	c.runs.add(s)
	f, err := c.fronts.get(run.Owner.UID)
	if err == nil {
		err = f.serve(s)
	}
	if err != nil {
		c.leave(s)
		if errors.Is(err, keep.ErrClosed) {
			return nil, err
		}
		return nil, fmt.Errorf("cannot serve models: %w", err)
	}
	context.AfterFunc(ctx, func() { c.leave(s) })
	return s.spent, nil
}

// leave ends what a run has. One that has started again is served anew, and keeps that.
func (c *Control) leave(s *served) {
	f := c.fronts.running(s.run.Owner.UID)
	current := c.runs.remove(s)
	s.listener.Close()
	s.contents.leave()
	if f != nil && current {
		f.leave(s)
	}
}

// Close ends the processes. What calls in flight had reserved counts as used; but where there
// are journals, the processes go on with these calls, and the next control settles them.
func (c *Control) Close() error {
	all := c.fronts.close()
	providers, flying := c.desk.upstreams.close()
	for _, p := range append(all, providers...) {
		if flying && c.desk.Journals != "" {
			p.Leave()
		} else {
			p.End()
		}
	}
	if c.desk.Journals != "" {
		os.Remove(c.desk.Journals) // it fails while a journal is in it
	}
	return nil
}

// Find settles the calls that processes of a control before this one have ended, and will end,
// until ctx ends. Those that are still at it are followed, and killed where they take longer
// than any call may. gone is closed when none makes a call any more; nil: none does.
func (c *Control) Find(ctx context.Context) (gone <-chan struct{}, err error) {
	entries, err := os.ReadDir(c.desk.Journals)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var failed error
	var calling sync.WaitGroup
	calls := false
	for _, entry := range entries {
		j, err := openJournal(filepath.Join(c.desk.Journals, entry.Name()), c.found, c.desk.Log)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		switch {
		case j.ended():
		case strings.HasPrefix(entry.Name(), upstreamProgram):
			calls = true
			calling.Go(func() { j.follow(ctx, c.longest()) })
		default:
			go j.follow(ctx, c.longest())
		}
	}
	if calls {
		ended := make(chan struct{})
		gone = ended
		go func() { calling.Wait(); close(ended) }()
	}
	return gone, errors.Join(err, failed)
}

// longest is how long a process may take for the calls that it has: as the slowest provider.
func (c *Control) longest() time.Duration {
	most := time.Minute
	for _, p := range c.desk.Config().Providers {
		most = max(most, p.Timeouts.Total+time.Minute)
	}
	return most
}

// found settles a call of an earlier control.
func (c *Control) found(d link.Done) {
	var t ticket
	err := json.Unmarshal(d.Ticket, &t)
	if err == nil && c.desk.Run == nil {
		err = fmt.Errorf("nobody knows runs")
	}
	var run agent.Run
	if err == nil {
		run, err = c.desk.Run(t.Run)
	}
	if err != nil { // a run that was removed has no budget any more
		c.desk.Log.Warn("a call of a model of an earlier cloved is not settled", "run", t.Run, "error", err)
		return
	}
	by := c.runs.getOr(run)
	by.fly(t.Model, 1) // pay counts it down
	c.desk.settler.settle(by, t.bill(), d)
}
