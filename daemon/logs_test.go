package daemon

import (
	"os"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
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
	var told []api.LogLine
	c.note = func(_ string, note any) error { told = append(told, note.(api.LogNote).Line); return nil }
	offset := int64(20)
	for _, row := range []struct {
		p     api.LogsParams
		bytes int64
	}{{api.LogsParams{After: 2, AfterOffset: &offset}, 30}, {api.LogsParams{After: 2}, 0}} {
		told = nil
		_, err := r.d.logReader().read(c, row.p)
		must(t, err)
		if len(told) != 2 || told[0].LostLines != 3 || told[0].LostBytes != row.bytes || told[1].Number != 6 || told[1].Offset != 51 {
			t.Errorf("%+v: %+v", row.p, told)
		}
	}
}
