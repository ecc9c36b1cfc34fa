package daemon

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/logs"
)

// A caller that requests many lines at once gets them in few notifications, complete and in
// order, and a follower gets the last ones although nothing more comes. The control requests
// one line at a time.
func TestManyLinesInOneNotification(t *testing.T) {
	t.Parallel()
	const lines = 3000
	r := newRig(t, nil)
	run := r.add("a", ownerCaller.owner, agent.StateEnded)
	log, err := logs.Open(r.d.options.Paths.Log(run.Spec.ID), 64<<20)
	must(t, err)
	out := log.Stream("stdout")
	for i := range lines {
		_, _ = out.Write([]byte(strconv.Itoa(i+1) + strings.Repeat(" \"x", 20) + "\n"))
	}
	must(t, log.Close())
	must(t, r.d.cache.refresh())
	for _, p := range []api.LogsParams{{}, {Many: true}, {Many: true, Follow: true}} {
		c := r.as(ownerCaller)
		c.run, _ = r.d.cache.get(run.Spec.ID)
		c.id = json.RawMessage("7")
		notes, next := 0, int64(0)
		c.note = func(_ string, params any) error {
			text, err := json.Marshal(params)
			must(t, err)
			if notes++; len(text) > manyBytes+1<<10 {
				t.Errorf("a notification of %d bytes", len(text))
			}
			note, err := api.ParseLogNote(text)
			must(t, err)
			if !p.Many {
				note.Lines = []api.LogLine{note.Line}
			}
			for _, line := range note.Lines {
				if next++; line.Number != next || !strings.HasPrefix(line.Text, strconv.FormatInt(next, 10)+" ") {
					t.Fatalf("line %d: %+v", next, line)
				}
			}
			return nil
		}
		_, err := r.d.logReader().read(c, p)
		must(t, err)
		if next != lines || p.Many != (notes < lines/50) {
			t.Errorf("%+v: %d lines in %d notifications", p, next, notes)
		}
	}
	c := r.serve()
	got := 0
	must(t, c.Logs(context.Background(), api.LogsParams{RunParams: api.RunParams{Run: "1000/a"}}, func(part []api.LogLine) error { got += len(part); return nil }))
	if got != lines {
		t.Errorf("%d lines over the socket", got)
	}
}
