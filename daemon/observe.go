package daemon

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/traces"
)

// observed answers a call, and counts and traces that it did.
func (d *Daemon) observed(ctx context.Context, peer caller, method string, params json.RawMessage, answer func(context.Context) (any, error)) (any, error) {
	began := time.Now()
	ctx, span := d.tracer.Call(ctx, method, peer.owner.UID, params)
	result, err := answer(ctx)
	word := metrics.Done
	if err != nil {
		word = faultOf(err).Data.Word
	}
	d.meter.Called(method, word, time.Since(began))
	span.End(word)
	return result, err
}

// follow counts, traces and logs what happens to runs after the numbered occurrence,
// until ctx ends. It reads the store's own list, so it misses nothing that
// somebody else did.
func (d *Daemon) follow(ctx context.Context, after uint64) {
	for _, run := range d.mirror.all(func(run *agent.Run) bool { return run.State == agent.StateRunning }) {
		d.lives[run.Spec.ID] = lifeOf(run, run.Started)
	}
	for {
		moved := d.mirror.changed()
		news, last, gap := d.mirror.since(after)
		if gap {
			d.meter.Unseen(missed(after, last, news))
		}
		for _, o := range news {
			d.lived(o)
			d.logEnd(o)
			d.meter.Happened(o) // last: who sees the count finds the span, too
		}
		after = last
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

func lifeOf(run agent.Run, began time.Time) traces.Life {
	return traces.Life{Began: began, Trace: run.Turn.Trace, Starts: run.Turn.Starts}
}

// lived traces an agent's life when it has ended, whoever started it. With --rm
// its run is gone by then, so what is needed of it is kept meanwhile.
func (d *Daemon) lived(o agent.RunEvent) {
	switch o.Kind {
	case agent.RunStarted:
		run, _ := d.mirror.get(o.ID) // gone already: the life has no parent
		d.lives[o.ID] = lifeOf(run, o.Time)
	case agent.RunEnded, agent.RunLost:
		if l, known := d.lives[o.ID]; known {
			d.tracer.Lived(l, o)
		}
		delete(d.lives, o.ID)
	}
}

// logEnd tells of an agent's end, whoever started it; starts are logged by who makes them.
func (d *Daemon) logEnd(o agent.RunEvent) {
	switch o.Kind {
	case agent.RunEnded:
		end := []any{"run", o.Name, "id", o.ID, "status", o.Status}
		if o.ExitCode != nil {
			end = append(end, "exit_code", *o.ExitCode)
		}
		d.log.Info("ended", end...)
	case agent.RunLost:
		d.log.Warn("lost: its supervisor died", "run", o.Name, "id", o.ID, "status", o.Status)
	}
}

// gauges are what is true at the moment of a scrape. A store that cannot be
// read leaves its own out, and the rest as cloved last knew it.
func (d *Daemon) gauges() []metrics.Sample {
	err := d.mirror.refresh()
	states, promised := d.mirror.tally()
	var samples []metrics.Sample
	set := func(name string, value float64, labels ...string) {
		samples = append(samples, metrics.Sample{Name: name, Labels: labels, Value: value})
	}
	for _, state := range agent.States {
		set(metrics.Agents, float64(states[state]), string(state))
	}
	waiting, draining := d.keeper.queue()
	for _, reason := range metrics.Reasons {
		set(metrics.Queue, float64(waiting[reason]), reason)
	}
	set(metrics.Draining, map[bool]float64{true: 1}[draining])
	set(metrics.MemoryPromised, float64(promised))
	set(metrics.MemoryLimit, float64(d.config().memoryBytes()))
	set(metrics.Connections, float64(d.connections.Load()))
	if info, serr := os.Stat(d.records.path); err == nil && serr == nil {
		set(metrics.StoreSize, float64(info.Size()))
	}
	return samples
}

// tally counts the runs in each state, and the memory that live ones may have.
func (m *mirror) tally() (states map[agent.State]int, promised int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	states = map[agent.State]int{}
	for _, run := range m.runs {
		states[run.State]++
		if run.State == agent.StateStarting || run.State == agent.StateRunning {
			promised += run.Spec.Limits.MemoryBytes
		}
	}
	return states, promised
}

// queue says how many wait for what, and whether cloved is drained.
func (k *keeper) queue() (waiting map[string]int, draining bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting, k.draining
}

// storeFailed tells whether an error is the store's own, and not its answer.
func storeFailed(err error) bool {
	switch agent.KindOf(err) {
	case agent.KindNotFound, agent.KindConflict, agent.KindInvalid:
		return false
	}
	return err != nil && api.ErrorOf(err).Code != api.CodeCancelled
}
