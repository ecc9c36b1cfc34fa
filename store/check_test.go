package store

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// spoilings violate each invariant once, with the message that Check must return.
var spoilings = map[string]struct {
	spoil func(tb *tables, live, ended agent.ID) error
	says  string
}{
	"name without run": {func(tb *tables, _, _ agent.ID) error { return tb.names.Put([]byte("ghost"), []byte("x")) }, `name "ghost"`},
	"name of no run":   {func(tb *tables, _, _ agent.ID) error { return tb.names.Put([]byte("ghost"), nil) }, `name "ghost"`},
	"run without name": {func(tb *tables, _, _ agent.ID) error { return tb.names.Delete([]byte("0/live")) }, "index lacks it"},
	"name of another run": {func(tb *tables, live, ended agent.ID) error {
		return tb.names.Put([]byte("0/live"), []byte(ended))
	}, `name "0/live"`},
	"lease without run": {func(tb *tables, _, _ agent.ID) error { return tb.leases.Put(rangeKey(7), []byte("x")) }, "lease 00000007"},
	"lease of an ended run": {func(tb *tables, _, ended agent.ID) error {
		return tb.leases.Put(rangeKey(7), []byte(ended))
	}, "lease 00000007"},
	"lease of no range": {func(tb *tables, live, _ agent.ID) error { return tb.leases.Put([]byte("odd"), []byte(live)) }, "lease 6f6464"},
	"run without lease": {func(tb *tables, _, _ agent.ID) error { return tb.leases.Delete(rangeKey(0)) }, "index lacks it"},
	"range shared": {func(tb *tables, live, _ agent.ID) error {
		run := newRun("twin")
		run.State = agent.StateStarting
		return firstOf(tb.put(run), tb.putName(run))
	}, "id range 0 is also that of"},
	"name shared": {func(tb *tables, _, _ agent.ID) error {
		run := newRun("live")
		run.State, run.Lease.IDRange = agent.StateStarting, 1
		return firstOf(tb.put(run), tb.leases.Put(rangeKey(1), []byte(run.Spec.ID)))
	}, `its name "0/live" is also that of`},
	"value that is no run": {func(tb *tables, live, _ agent.ID) error { return tb.runs.Put([]byte(live), []byte("{")) }, "damaged"},
	"key that is no id": {func(tb *tables, live, _ agent.ID) error {
		return tb.runs.Put([]byte("odd"), tb.runs.Get([]byte(live)))
	}, `run "odd": says that it is`},
	"record of another run": {func(tb *tables, _, ended agent.ID) error {
		run, err := tb.mustGet(ended)
		run.Record.ID = agent.NewID()
		return firstOf(err, tb.put(*run))
	}, "its record is not its own"},
	"bucket in a bucket": {func(tb *tables, _, _ agent.ID) error {
		_, err := tb.runs.CreateBucket([]byte("inner"))
		return err
	}, `run "inner"`},
	"bucket of another": {func(tb *tables, _, _ agent.ID) error {
		_, err := tb.tx.CreateBucket([]byte("foreign"))
		return err
	}, `bucket "foreign"`},
	"other schema":       {func(tb *tables, _, _ agent.ID) error { return runsFormat.setSchema(tb.tx, 99) }, "schema: 99"},
	"state unknown":      {edit(func(r *agent.Run) { r.State = "limbo" }), "its state is not one"},
	"name invalid":       {edit(func(r *agent.Run) { r.Spec.Name = "a/b" }), "its name is not valid"},
	"no creation":        {edit(func(r *agent.Run) { *r = agent.Run{Spec: r.Spec, State: r.State, Lease: r.Lease} }), "no time of creation"},
	"live, no lease":     {edit(func(r *agent.Run) { r.Lease = nil }), "a lease belongs"},
	"live with a record": {edit(func(r *agent.Run) { r.Record = &agent.Record{} }), "a record belongs"},
	"ended with a lease": {edit(func(r *agent.Run) { r.State = agent.StateEnded }), "a lease belongs"},
	"ended, no record":   {edit(func(r *agent.Run) { r.State = agent.StateEnded }), "a record belongs"},
	"ended, a process":   {edit(func(r *agent.Run) { r.State, r.PID = agent.StateEnded, 1 }), "ended, or waits, and has a process"},
	"range below 0":      {edit(func(r *agent.Run) { r.Lease.IDRange = -1 }), "out of bounds"},
	"range too high":     {edit(func(r *agent.Run) { r.Lease.IDRange = agent.IDRanges }), "out of bounds"},
}

// edit changes the live run with change.
func edit(change func(*agent.Run)) func(*tables, agent.ID, agent.ID) error {
	return func(tb *tables, live, _ agent.ID) error {
		run, err := tb.mustGet(live)
		change(run)
		return firstOf(err, tb.put(*run))
	}
}

// Check names each violation, and reports nothing before.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for name, c := range spoilings {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir()+"/state/clove.db") // without the closing check: it stays damaged
			s.db.NoSync = true
			live, err := s.Begin(newRun("live"))
			must(t, err)
			ended, err := s.Begin(newRun("ended"))
			must(t, err)
			_, err = endRun(s, ended.Spec)
			must(t, err)
			if problems, err := s.Check(); err != nil || problems != nil {
				t.Fatalf("before: %v %v", problems, err)
			}
			must(t, s.update(func(tb *tables) error { return c.spoil(tb, live.Spec.ID, ended.Spec.ID) }))
			problems, err := s.Check()
			must(t, err)
			if !strings.Contains(strings.Join(problems, "\n"), c.says) {
				t.Errorf("got %q, want one that says %q", problems, c.says)
			}
		})
	}
}

// bbolt checks the pages below the buckets: a free list that lacks pages leaves them without
// an owner.
func TestCheckFindsALostPage(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/state/clove.db"
	s := open(t, path)
	_, err := s.Begin(newRun(""))
	must(t, err)
	must(t, s.Close())

	data, err := os.ReadFile(path)
	must(t, err)
	meta, size := newestMeta(data)
	freelist := data[binary.LittleEndian.Uint64(meta[metaFreelist:])*size:]
	binary.LittleEndian.PutUint16(freelist[10:], 0) // the number of pages in the header
	must(t, os.WriteFile(path, data, 0o600))

	problems, err := open(t, path).Check()
	must(t, err)
	if !strings.Contains(strings.Join(problems, "\n"), "unreachable unfreed") {
		t.Errorf("got %q", problems)
	}
}

// Offsets from the start of a meta page (internal/common/meta.go in bbolt's source).
const (
	metaFreelist = 48 // the page of the free list
	metaPages    = 56 // the number of pages

)

// newestMeta returns the meta page of the last transaction, and the page size.
func newestMeta(data []byte) ([]byte, uint64) {
	size := uint64(binary.LittleEndian.Uint32(data[24:]))
	if other := data[size:]; binary.LittleEndian.Uint64(other[metaTxid:]) > binary.LittleEndian.Uint64(data[metaTxid:]) {
		return other, size
	}
	return data, size
}
