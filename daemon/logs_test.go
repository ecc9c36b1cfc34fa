package daemon

import (
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models"
)

// A caller that continues after a line that has been dropped gets the number of lines that are
// missing since then, and of bytes if it gives the offset.
func TestLogsGoOnBehindALine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("a", ownerCaller.owner, agent.StateEnded)
	must(t, os.MkdirAll(r.d.options.Paths.Log(run.Spec.ID), 0o700))
	must(t, os.WriteFile(r.d.options.Paths.Log(run.Spec.ID)+"/log", []byte(`{"head":true,"stream":"clove","lost_lines":5,"lost_bytes":50}`+"\n"+
		`{"stream":"stdout","text":"x"}`+"\n"), 0o600))
	must(t, r.d.cache.refresh())
	c := r.as(ownerCaller)
	c.run, _ = r.d.cache.get(run.Spec.ID)
	var lines []api.LogLine
	c.note = func(_ string, note any) error { lines = append(lines, note.(api.LogNote).Line); return nil }
	offset := int64(20)
	for _, row := range []struct {
		p     api.LogsParams
		bytes int64
	}{{api.LogsParams{After: 2, AfterOffset: &offset}, 30}, {api.LogsParams{After: 2}, 0}} {
		lines = nil
		_, err := r.d.logReader().read(c, row.p)
		must(t, err)
		if len(lines) != 2 || lines[0].LostLines != 3 || lines[0].LostBytes != row.bytes || lines[1].Number != 6 || lines[1].Offset != 51 {
			t.Errorf("%+v: %+v", row.p, lines)
		}
	}
}

// Contents of model calls can be read of a run that keeps them, in the foreground, too. The
// control: the same caller reads the run's own log.
func TestALogOfModelsIsRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("a", ownerCaller.owner, agent.StateEnded)
	must(t, r.d.cache.refresh())
	c := r.as(ownerCaller)
	c.run, _ = r.d.cache.get(run.Spec.ID)
	var lines []string
	c.note = func(_ string, note any) error {
		line := note.(api.LogNote).Line
		lines = append(lines, line.Stream+" "+line.Text)
		return nil
	}
	read := func(p api.LogsParams) error {
		lines = nil
		_, err := r.d.logReader().read(c, p)
		return err
	}
	wantCode(t, read(api.LogsParams{Models: true}), api.CodeConflict)
	c.run.Spec.Kernel.ModelLog = true
	wantCode(t, read(api.LogsParams{Models: true, Follow: true}), api.CodeConflict)
	must(t, read(api.LogsParams{Models: true}))
	contents, err := r.d.modelLog(run.Spec.ID)
	must(t, err)
	contents.Add("c1", []byte("{}"), []byte("yes\nno\n"))
	must(t, contents.Close())
	must(t, read(api.LogsParams{Models: true, Follow: true}))
	if got := strings.Join(lines, "|"); got != "clove c1|request {}|answer yes|answer no" {
		t.Error(got)
	}
	c.run.Spec.Detached = true
	if must(t, read(api.LogsParams{})); len(lines) != 0 {
		t.Errorf("they are in the run's own log: %q", lines)
	}
	c.run.Spec.Detached = false
	wantCode(t, read(api.LogsParams{}), api.CodeConflict)
	must(t, r.d.options.Paths.RemoveLog(run.Spec.ID))
	if _, err := os.Stat(r.d.options.Paths.ModelLog(run.Spec.ID)); !os.IsNotExist(err) {
		t.Errorf("it is not removed with the run's log: %v", err)
	}
}

func TestCallText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]models.Call{
		"refused reason=unknown-model":         {Outcome: models.OutcomeRefused, Reason: "unknown-model"},
		"small at near: refused reason=budget": {Model: "small", Provider: "near", Outcome: models.OutcomeRefused, Reason: "budget"},
		"small at near: ok status=200 tokens_in=3 tokens_cached=4 tokens_out=5 cost_micros=6 wait_ms=7 first_ms=8 total_ms=9": {Model: "small", Provider: "near", Answered: "planted", Trace: "planted",
			Outcome: models.OutcomeOK, Status: 200, Usage: models.Usage{In: 1, CacheWrite: 2, Cached: 4, Out: 5}, Cost: 6, Wait: 7 * time.Millisecond, First: 8 * time.Millisecond, Total: 9 * time.Millisecond},
	} {
		if got := callText(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
