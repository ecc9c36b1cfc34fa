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
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// writer is a client that changes runs of its own until cloved dies.
type writer struct {
	*model
	number  int
	random  *rand.Rand
	pattern agent.Spec // a complete spec
	own     *promise   // a long-lived agent that only this writer changes
	agents  bool       // whether it starts agents too
	lost    bool       // whether cloved has died
	made    int
}

// lateLooks is after how many lives of cloved a supervisor may still apply a request.
const lateLooks = 5

// write sends one request for a change. after is the run's state if the change was made; if
// the answer is lost, the previous state is kept as a second possibility.
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
	case lostAnswer(err), p.mortal && agent.KindOf(err) == agent.KindConflict: // its supervisor was killed, perhaps after the change
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

// spec returns the pattern with a name, a command and a new id.
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

// promise registers a run that is about to be requested.
func (w *writer) promise(spec agent.Spec, ends int, live bool) *promise {
	p := &promise{writer: w.number, id: spec.ID, names: []string{spec.Name}, wall: []time.Duration{spec.Limits.WallClock}, exists: []bool{false}, late: map[time.Duration]int{}, ends: ends, live: live}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[p.id] = p
	return p
}

// work sends one request after the other.
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

// waiting lists the queued runs of this writer that certainly exist, in an order that a seed
// repeats.
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

// create queues a run whose start is much later.
func (w *writer) create(ctx context.Context, c *client.Client) {
	spec := w.spec(w.name(), "true")
	p := w.promise(spec, -1, false)
	w.write(p, agent.RunQueued, func() error {
		_, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec, DelayNS: int64(time.Hour)})
		return err
	}, func(p *promise) { p.exists = []bool{true} })
}

func (w *writer) rename(ctx context.Context, c *client.Client, p *promise) {
	name := w.name()
	w.write(p, agent.RunRenamed, func() error {
		_, err := client.Do(ctx, c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: string(p.id)}, Name: name})
		return err
	},
		func(p *promise) { p.names = []string{name} })
}

func (w *writer) remove(ctx context.Context, c *client.Client, p *promise) {
	w.write(p, agent.RunRemoved, func() error {
		return client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(p.id)}})
	},
		func(p *promise) { p.exists = []bool{false} })
}

// extend changes a live agent's wall clock limit.
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
	w.write(live, agent.RunUpdated, func() error {
		_, err := client.Do(ctx, c, methods.RunUpdate, api.UpdateParams{RunParams: api.RunParams{Run: string(live.id)}, Update: agent.Update{WallClock: &wall}})
		return err
	},
		func(p *promise) { p.wall = []time.Duration{wall} })
}

// short starts an agent that ends by itself with its own exit code while other requests
// follow.
func (w *writer) short(ctx context.Context, c *client.Client) {
	code := w.random.IntN(100)
	spec := w.spec(w.name(), fmt.Sprintf("sleep 0.0%d; exit %d", w.random.IntN(9), code))
	p := w.promise(spec, code, false)
	w.write(p, agent.RunQueued, func() error { _, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec}); return err },
		func(p *promise) { p.exists = []bool{true} })
}

// long starts an agent that writes numbers to its log until it is stopped.
func (w *writer) long(ctx context.Context, c *client.Client, restart agent.RestartPolicy) *promise {
	spec := w.spec(w.name(), "i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done")
	spec.Restart.Policy = restart
	spec.Limits.WallClock = time.Hour
	p := w.promise(spec, -1, true)
	p.restarts = restart != ""
	w.write(p, agent.RunStarted, func() error { _, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec}); return err },
		func(p *promise) { p.exists = []bool{true} })
	return p
}
