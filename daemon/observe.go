package daemon

import (
	"context"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/scheduler"
)

// follow counts, traces and logs what happens to runs after the numbered event,
// until ctx ends. It reads the store's own list, so it misses nothing that
// another process did.
func (d *Daemon) follow(ctx context.Context, after uint64) {
	// These began before this cloved: their event of the start will not come again.
	for _, run := range d.cache.all(func(run *agent.Run) bool { return run.State == agent.StateRunning }) {
		d.lives[run.Spec.ID] = lifeOf(run, run.Started)
	}
	for {
		moved := d.cache.changed()
		news, last, gap := d.cache.since(after)
		if gap {
			d.meter.Unseen(missed(after, last, news))
		}
		for _, o := range news {
			d.lived(o)
			d.logEnd(o)
			d.audit(o)
			d.meter.Happened(o) // last: a test that sees the count also finds the span
		}
		after = last
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// audit records what happened to a run, and ends its part in what agents share.
func (d *Daemon) audit(o agent.RunEvent) {
	if err := d.shared.kernel.Happened(o, d.namespaceOf(o)); err != nil {
		d.log.Error("an event is not in the audit log", "run", o.Name, "event", string(o.Kind), "error", err)
	}
}

// namespaceOf is that of an event's run. With --rm the run is gone when its end is seen.
func (d *Daemon) namespaceOf(o agent.RunEvent) string {
	if run, found := d.cache.get(o.ID); found && run.Spec.Kernel.Namespace != "" {
		d.namespaces[o.ID] = run.Spec.Kernel.Namespace
	}
	namespace := d.namespaces[o.ID]
	if o.Kind == agent.RunRemoved {
		delete(d.namespaces, o.ID)
	}
	return namespace
}

// lifeOf keeps what a span needs of a run. The run itself may be gone when the life ends.
func lifeOf(run agent.Run, began time.Time) traces.Life {
	return traces.Life{Began: began, Trace: run.Queue.Trace, Starts: run.Queue.Starts}
}

// lived traces an agent's life when it has ended, also one that cloved did not start. With --rm
// its run is gone by then, so the needed fields are kept meanwhile.
func (d *Daemon) lived(o agent.RunEvent) {
	switch o.Kind {
	case agent.RunStarted:
		run, _ := d.cache.get(o.ID) // gone already: the life has no parent
		d.lives[o.ID] = lifeOf(run, o.Time)
	case agent.RunEnded, agent.RunLost:
		if l, known := d.lives[o.ID]; known {
			d.tracer.Lived(l, o)
		}
		delete(d.lives, o.ID)
	}
}

// logEnd logs an agent's end, whichever process started it. Starts are logged where they
// are made.
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

// gauges are what is true at the moment of a scrape. A store that cannot be read leaves its
// own out, and the rest as cloved last knew it: a scrape must not fail when the store does.
func (d *Daemon) gauges() []metrics.Sample {
	err := d.cache.refresh()
	states, live := d.cache.tally()
	var samples []metrics.Sample
	set := func(name string, value float64, labels ...string) {
		samples = append(samples, metrics.Sample{Name: name, Labels: labels, Value: value})
	}
	for _, state := range agent.States {
		set(metrics.Agents, float64(states[state]), string(state))
	}
	waiting, draining := d.reconciler.queue()
	for _, reason := range scheduler.Waits {
		set(metrics.Queue, float64(waiting[reason]), reason)
	}
	set(metrics.Draining, map[bool]float64{true: 1}[draining])
	if room, merr := d.memory().of(live); merr == nil {
		set(metrics.MemoryCounted, float64(room.Used+scheduler.Reserves(live)))
		set(metrics.MemoryLimit, float64(room.Limit))
	}
	d.shared.gauges(set)
	d.inference.gauges(set)
	set(metrics.Connections, float64(d.connections.Load()))
	if info, serr := os.Stat(d.records.path); err == nil && serr == nil {
		set(metrics.StoreSize, float64(info.Size()))
	}
	return samples
}
