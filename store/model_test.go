package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// model is the store as a simple implementation in memory.
type model struct {
	runs map[agent.ID]*agent.Run
}

func (m *model) ids() []agent.ID {
	ids := []agent.ID{"0000000000000000"} // the id of a run that never exists
	for id := range m.runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (m *model) named(name agent.RunName) bool {
	for _, run := range m.runs {
		if run.Name() == name {
			return true
		}
	}
	return false
}

func (m *model) lowestFree() int {
	for index := 0; ; index++ {
		taken := false
		for _, run := range m.runs {
			taken = taken || run.Lease != nil && run.Lease.IDRange == index
		}
		if !taken {
			return index
		}
	}
}

// After any sequence of calls the store equals the model, and is intact.
func TestStoreIsItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store-model-*")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := &walk{path: filepath.Join(dir, "clove.db"), model: model{runs: map[agent.ID]*agent.Run{}}}
		w.open(t)
		defer func() { w.s.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"begin":   w.begin,
			"apply":   w.apply,
			"finish":  w.finish,
			"enqueue": w.enqueue,
			"admit":   w.admit,
			"requeue": w.requeue,
			"remove":  w.remove,
			"reopen":  func(t *rapid.T) { w.s.Close(); w.open(t) },
			"":        w.compare,
		})
	})
}

type walk struct {
	path string
	s    *Store
	model
}

func (w *walk) open(t *rapid.T) {
	s, err := Open(w.path, patience)
	if err != nil {
		t.Fatal(err)
	}
	s.db.NoSync = true
	w.s = s
}

func drawRun(t *rapid.T) agent.Run {
	return runOf(rapid.SampledFrom([]uint32{0, 1000}).Draw(t, "owner"), rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name"))
}

func (w *walk) begin(t *rapid.T) {
	run := drawRun(t)
	taken, index := w.named(run.Name()), w.lowestFree()
	got, err := w.s.Begin(run)
	if taken != (err != nil) {
		t.Fatalf("the name is taken: %v; got error %v", taken, err)
	}
	if err == nil {
		if got.Lease.IDRange != index {
			t.Fatalf("got range %d, want %d", got.Lease.IDRange, index)
		}
		w.runs[run.Spec.ID] = &got
	}
}

func (w *walk) enqueue(t *rapid.T) {
	run := drawRun(t)
	taken := w.named(run.Name())
	got, err := w.s.Enqueue(run)
	if taken != (err != nil) {
		t.Fatalf("the name is taken: %v; got error %v", taken, err)
	}
	if err == nil {
		w.runs[run.Spec.ID] = &got
	}
}

// admit begins a queued run, and keeps what the queue knew.
func (w *walk) admit(t *rapid.T) {
	id := rapid.SampledFrom(w.ids()).Draw(t, "id")
	run := w.runs[id]
	if run == nil {
		return
	}
	queued, index := run.State == agent.StateQueued, w.lowestFree()
	got, err := w.s.Begin(agent.Run{Spec: run.Spec})
	if queued != (err == nil) {
		t.Fatalf("queued: %v; got error %v", queued, err)
	}
	if err == nil {
		if got.Lease.IDRange != index || !got.Created.Equal(run.Created) {
			t.Fatalf("got %+v of %+v, range %d", got, run, index)
		}
		w.runs[id] = &got
	}
}

func (w *walk) requeue(t *rapid.T) {
	id := rapid.SampledFrom(w.ids()).Draw(t, "id")
	run := w.runs[id]
	got, err := w.s.Requeue(id, nil)
	if allowed := run != nil && run.State == agent.StateEnded; allowed != (err == nil) {
		t.Fatalf("allowed: %v; got error %v", allowed, err)
	}
	if err == nil {
		if got.Previous == nil || got.Record != nil {
			t.Fatalf("records: %+v", got)
		}
		w.runs[id] = &got
	}
}

func (w *walk) draw(t *rapid.T) (agent.ID, agent.Event, *agent.Run) {
	id := rapid.SampledFrom(w.ids()).Draw(t, "id")
	return id, rapid.SampledFrom(agent.AllEvents).Draw(t, "event"), w.runs[id]
}

func (w *walk) apply(t *rapid.T) {
	id, event, run := w.draw(t)
	pid := rapid.IntRange(1, 1000).Draw(t, "pid")
	_, err := w.s.Apply(id, event, func(r *agent.Run) { r.PID = pid })
	if allowed := run != nil && w.leads(run, event, false) && event == agent.EventStarted; allowed != (err == nil) {
		t.Fatalf("allowed: %v; got error %v", allowed, err)
	}
	if err == nil {
		run.State, _ = run.State.Next(event)
		run.PID = pid
	}
}

func (w *walk) finish(t *rapid.T) {
	id, event, run := w.draw(t)
	record := agent.Record{Version: agent.RecordVersion, ID: id, Ended: time.Unix(1, 0).UTC()}
	if run != nil {
		record.Name = run.Spec.Name
	}
	_, err := w.s.Finish(id, event, record, nil)
	if allowed := run != nil && w.leads(run, event, true); allowed != (err == nil) {
		t.Fatalf("allowed: %v; got error %v", allowed, err)
	}
	if err == nil {
		run.State, run.Lease, run.PID, run.Record = agent.StateEnded, nil, 0, &record
	}
}

// leads reports whether event moves run, and if wanted moves it to its end.
func (w *walk) leads(run *agent.Run, event agent.Event, toEnd bool) bool {
	next, err := run.State.Next(event)
	return err == nil && (next == agent.StateEnded) == toEnd
}

func (w *walk) remove(t *rapid.T) {
	id := rapid.SampledFrom(w.ids()).Draw(t, "id")
	run := w.runs[id]
	err := w.s.Remove(id)
	if allowed := run != nil && run.State == agent.StateEnded; allowed != (err == nil) {
		t.Fatalf("allowed: %v; got error %v", allowed, err)
	}
	if err == nil {
		delete(w.runs, id)
	}
}

func (w *walk) compare(t *rapid.T) {
	all, err := w.s.List()
	if err != nil || len(all) != len(w.runs) {
		t.Fatalf("%d runs and error %v, want %d runs", len(all), err, len(w.runs))
	}
	for _, got := range all {
		want := w.runs[got.Spec.ID]
		if want == nil || got.State != want.State || got.PID != want.PID ||
			(got.Lease == nil) != (want.Lease == nil) || (got.Record == nil) != (want.Record == nil) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		byName, err := w.s.Get(got.Name().String())
		if err != nil || byName.Spec.ID != got.Spec.ID {
			t.Fatalf("by name: %s, %v", byName.Spec.ID, err)
		}
	}
	if problems, err := w.s.Check(); err != nil || problems != nil {
		t.Fatalf("check: %v, %v", problems, err)
	}
}
