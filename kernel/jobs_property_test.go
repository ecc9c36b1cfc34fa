package kernel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// model is what a queue must do: for each job by its body who holds it, and what became of it.
type model struct {
	holder   map[string]agent.ID
	until    map[string]time.Time
	attempts map[string]int
	ended    map[string]string // done, dead or cancelled
}

// Whatever holders, time and restarts of cloved do, each job is held by one run at most, and is done once, dead or
// cancelled in the end.
func TestEachJobIsDoneOnceOrDead(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	draw := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	const most = 3
	r := newQueue(t, api.QueueAddParams{LeaseMS: 20_000, BackoffMS: 1000, Attempts: most, Concurrency: 4})
	names := []string{"a", "b", "c"}
	workers := map[string]*rig{}
	for _, name := range names {
		workers[name] = r.works(1000, "", name)
	}
	m := model{map[string]agent.ID{}, map[string]time.Time{}, map[string]int{}, map[string]string{}}
	ids := map[string]string{}
	free := func(body string, counts bool) {
		delete(m.holder, body)
		if counts && m.attempts[body] == most {
			m.ended[body] = api.JobDead
		}
	}
	// expire is what a look at the clock means for the model.
	expire := func() {
		for body := range maps.Clone(m.holder) {
			if !r.config.Clock().Before(m.until[body]) {
				free(body, true)
			}
		}
	}
	for step := range 500 {
		w := workers[names[draw.IntN(len(names))]]
		switch draw.IntN(12) {
		case 0, 1, 2:
			body := fmt.Sprint("j", step)
			ids[body] = r.adds(body, api.NewJob{Priority: draw.IntN(3), DelayMS: int64(draw.IntN(2) * 3000)}).ID
		case 3, 4, 5:
			job, found := w.claims()
			if !found {
				continue
			}
			body := strings.Trim(string(job.Body), `"`)
			m.attempts[body]++
			switch {
			case m.holder[body] != "" || m.ended[body] != "":
				t.Fatalf("%s was given twice: %q %q", body, m.holder[body], m.ended[body])
			case job.Attempts != m.attempts[body]:
				t.Fatalf("%s: attempt %d, want %d", body, job.Attempts, m.attempts[body])
			}
			m.holder[body], m.until[body] = w.run.Spec.ID, job.Until
			if len(m.holder) > 4 {
				t.Fatalf("%d are held", len(m.holder))
			}
		case 6, 7, 8: // anyone tries to end one that some run holds
			held := slices.Sorted(maps.Keys(m.holder))
			if len(held) == 0 {
				continue
			}
			body := held[draw.IntN(len(held))]
			method := []string{agents.JobComplete.Name, agents.JobFail.Name, agents.JobRenew.Name}[draw.IntN(3)]
			params := map[string]string{"id": ids[body]}
			if method == agents.JobFail.Name {
				params["why"] = "no"
			}
			text, err := w.asAgent(method, params)
			if m.holder[body] != w.run.Spec.ID {
				wantCode(t, err, api.CodeNotFound)
				continue
			}
			must(t, err)
			switch method {
			case agents.JobComplete.Name:
				free(body, false)
				m.ended[body] = api.JobDone
			case agents.JobFail.Name:
				free(body, true)
			default:
				m.until[body] = answerOf[api.JobResult](t)(text, nil).Job.Until
			}
		case 9: // a worker is killed, and starts again
			w.ended(agent.RunEnded)
			w.attach(true)
			for body, holder := range maps.Clone(m.holder) {
				if holder == w.run.Spec.ID {
					free(body, true)
				}
			}
		case 10:
			r.later(time.Duration(draw.IntN(15)) * time.Second)
			expire()
		case 11:
			if draw.IntN(3) == 0 && len(ids) > 0 {
				body := slices.Sorted(maps.Keys(ids))[draw.IntN(len(ids))]
				_, err := asks[api.JobResult](r, 1000, methods.JobsCancel.Name, api.JobParams{ID: ids[body]})
				if m.ended[body] == api.JobDone || m.ended[body] == "cancelled" {
					if err == nil {
						t.Fatalf("%s was %s, and is cancelled", body, m.ended[body])
					}
					continue
				}
				must(t, err)
				free(body, false)
				m.ended[body] = "cancelled"
				continue
			}
			r.close() // cloved ends, and comes back
			r.open()
			for _, w := range workers {
				w.Kernel, w.file, w.log, w.config = r.Kernel, r.file, r.log, r.config
				w.attach(false)
			}
			r.later(0)
			expire()
		}
	}
	ended := r.jobBodies()
	for _, state := range []string{api.JobDone, api.JobDead} {
		var want []string
		for body, is := range m.ended {
			if is == state {
				want = append(want, fmt.Sprintf("%q", body))
			}
		}
		slices.Sort(want)
		if !slices.Equal(ended[state], want) {
			t.Errorf("%s are\n%v, want\n%v", state, ended[state], want)
		}
	}
	if all := len(ended["open"]) + len(m.ended); all != len(ids) {
		t.Errorf("%d jobs of %d are there or over", all, len(ids))
	}
	if len(m.ended) < 20 {
		t.Errorf("%d are over", len(m.ended))
	}
}
