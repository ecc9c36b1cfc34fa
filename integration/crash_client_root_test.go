//go:build root

package integration

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
)

// writer is one client that changes runs of its own until cloved dies.
type writer struct {
	*model
	number  int
	random  *rand.Rand
	pattern agent.Spec // a complete one
	own     *promise   // an agent that lives long, and this writer alone changes
	agents  bool       // starts agents too
	lost    bool       // cloved is gone
	made    int
}

// lateLooks is how many lives of cloved a supervisor's answer may take.
const lateLooks = 5

// write asks for one change. after is what the run is if it happened; a lost
// answer keeps what it was as well.
func (w *writer) write(p *promise, what agent.RunEventKind, ask func() error, after func(*promise)) {
	err := ask()
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := *p
	after(&changed)
	switch {
	case err == nil:
		*p = changed
		w.told[happening{p.id, what}]++
		w.answers++
		select {
		case w.answered <- struct{}{}:
		default:
		}
	case lostAnswer(err), p.mortal && agent.KindOf(err) == agent.KindConflict: // its supervisor was killed, perhaps behind the deed
		p.names = append(slices.Clone(p.names), changed.names...)
		if what == agent.RunUpdated {
			p.late[changed.wall[0]] = lateLooks
		}
		p.exists = append(slices.Clone(p.exists), changed.exists...)
		w.lost = lostAnswer(err)
	default:
		w.fault("%s of %v: %v", what, p.names, err)
	}
}

// spec is the pattern with a name, a command and a new id.
func (w *writer) spec(name string, script string) agent.Spec {
	spec := w.pattern
	spec.ID, spec.Name = agent.NewID(), name
	spec.Command = []string{"sh", "-c", script}
	return spec
}

func (w *writer) name() string {
	w.made++
	return fmt.Sprintf("w%d-%d", w.number, w.made)
}

// promise enters a run that is about to be asked for.
func (w *writer) promise(spec agent.Spec, ends int, live bool) *promise {
	p := &promise{writer: w.number, id: spec.ID, names: []string{spec.Name}, wall: []time.Duration{spec.Limits.WallClock}, exists: []bool{false}, late: map[time.Duration]int{}, ends: ends, live: live}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[p.id] = p
	return p
}

// work asks for one thing after the other.
func (w *writer) work(ctx context.Context, c *client.Client) {
	w.lost = false
	if w.agents {
		w.short(ctx, c)
	}
	for ctx.Err() == nil && !w.lost {
		switch mine := w.waiting(); {
		case len(mine) < 3:
			w.create(ctx, c)
		case w.random.IntN(3) == 0:
			w.remove(ctx, c, mine[w.random.IntN(len(mine))])
		case w.random.IntN(2) == 0:
			w.extend(ctx, c)
		default:
			w.rename(ctx, c, mine[w.random.IntN(len(mine))])
		}
	}
}

// waiting lists the queued runs of this writer that are there for certain, in
// an order that a seed repeats.
func (w *writer) waiting() (mine []*promise) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.runs {
		if p.writer == w.number && p.ends < 0 && !p.live && !slices.Contains(p.exists, false) {
			mine = append(mine, p)
		}
	}
	slices.SortFunc(mine, func(a, b *promise) int { return cmp.Compare(a.id, b.id) })
	return mine
}

// finished lists this writer's agents whose records were seen.
func (w *writer) finished() (mine []*promise) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.runs {
		if p.writer == w.number && p.finished {
			mine = append(mine, p)
		}
	}
	return mine
}

// create asks for a run whose time comes much later.
func (w *writer) create(ctx context.Context, c *client.Client) {
	spec := w.spec(w.name(), "true")
	p := w.promise(spec, -1, false)
	w.write(p, agent.RunQueued, func() error {
		_, err := c.Start(ctx, api.StartParams{Spec: spec, DelayNS: int64(time.Hour)})
		return err
	}, func(p *promise) { p.exists = []bool{true} })
}

func (w *writer) rename(ctx context.Context, c *client.Client, p *promise) {
	name := w.name()
	w.write(p, agent.RunRenamed, func() error { _, err := c.Rename(ctx, string(p.id), name); return err },
		func(p *promise) { p.names = []string{name} })
}

func (w *writer) remove(ctx context.Context, c *client.Client, p *promise) {
	w.write(p, agent.RunRemoved, func() error { return c.Remove(ctx, string(p.id), false) },
		func(p *promise) { p.exists = []bool{false} })
}

// extend changes a living agent's wall clock.
func (w *writer) extend(ctx context.Context, c *client.Client) {
	live := w.own
	w.mu.Lock() // its supervisor may be killed at this moment
	spared := live == nil || live.mortal || live.pid == 0
	w.mu.Unlock()
	if spared {
		w.create(ctx, c)
		return
	}
	wall := time.Hour + time.Duration(w.random.IntN(3600))*time.Second
	w.write(live, agent.RunUpdated, func() error { _, err := c.Update(ctx, string(live.id), agent.Update{WallClock: &wall}); return err },
		func(p *promise) { p.wall = []time.Duration{wall} })
}

// short starts an agent that ends by itself with a code of its own, in the
// midst of what follows.
func (w *writer) short(ctx context.Context, c *client.Client) {
	code := w.random.IntN(100)
	spec := w.spec(w.name(), fmt.Sprintf("sleep 0.0%d; exit %d", w.random.IntN(9), code))
	p := w.promise(spec, code, false)
	w.write(p, agent.RunQueued, func() error { _, err := c.Start(ctx, api.StartParams{Spec: spec}); return err },
		func(p *promise) { p.exists = []bool{true} })
}

// long starts an agent that counts in its log until it is stopped.
func (w *writer) long(ctx context.Context, c *client.Client, restart agent.RestartPolicy) *promise {
	spec := w.spec(w.name(), "i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done")
	spec.Restart.Policy = restart
	spec.Limits.WallClock = time.Hour
	p := w.promise(spec, -1, true)
	p.restarts = restart != ""
	w.write(p, agent.RunStarted, func() error { _, err := c.Start(ctx, api.StartParams{Spec: spec}); return err },
		func(p *promise) { p.exists = []bool{true} })
	return p
}
