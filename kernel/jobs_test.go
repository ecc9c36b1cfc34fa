package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// works is a run that may add jobs to all queues, and claim those of the queue builds.
func (r *rig) works(uid uint32, namespace, name string) *rig {
	r.t.Helper()
	run := newRun(uid, agent.Kernel{Grants: []string{"send:job/*", "name:job/builds"}, Namespace: namespace})
	run.Spec.Name = name
	return r.as(run)
}

// newQueue is a rig with the queue builds, and a run beside it.
func newQueue(t *testing.T, settings api.QueueAddParams) *rig {
	t.Helper()
	r := newRig(t, agent.Kernel{Grants: []string{"send:job/*", "name:job/builds"}})
	settings.Name = "builds"
	_, err := asks[api.QueueResult](r, 1000, methods.QueueAdd.Name, settings)
	must(t, err)
	return r
}

// adds adds a job, whose body is a text.
func (r *rig) adds(body string, p api.NewJob) api.Job {
	r.t.Helper()
	p.Queue, p.Body = "builds", encode(fmt.Sprintf("%q", body))
	return answerOf[api.JobResult](r.t)(r.asAgent(agents.JobAdd.Name, api.JobAddParams{NewJob: p})).Job
}

// claims takes a job that is there; false: none is.
func (r *rig) claims() (api.Job, bool) {
	r.t.Helper()
	text, err := r.asAgent(agents.JobClaim.Name, `{"queue":"builds","within_ms":1}`)
	if err != nil {
		wantCode(r.t, err, api.CodeNotFound)
		return api.Job{}, false
	}
	return answerOf[api.JobResult](r.t)(text, nil).Job, true
}

// gets takes a job that must be there.
func (r *rig) gets(body string) api.Job {
	r.t.Helper()
	job, found := r.claims()
	if !found || string(job.Body) != fmt.Sprintf("%q", body) {
		r.t.Fatalf("got %v %s, want %s", found, job.Body, body)
	}
	return job
}

// none requires that no job can be claimed.
func (r *rig) none() {
	r.t.Helper()
	if job, found := r.claims(); found {
		r.t.Fatalf("got %s", job.Body)
	}
}

// later moves the clock, and has time do what it does.
func (r *rig) later(by time.Duration) {
	r.t.Helper()
	r.clock.Add(int64(by / time.Second))
	_, err := r.Kernel.jobs.Tick(r.engine)
	must(r.t, err)
}

func (r *rig) completes(id string) {
	r.t.Helper()
	_, err := r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: id})
	must(r.t, err)
}

func (r *rig) shows(id string) api.Job {
	r.t.Helper()
	result, err := asks[api.JobResult](r, 1000, methods.JobsShow.Name, api.JobGetParams{ID: id})
	must(r.t, err)
	return result.Job
}

func TestJobsAreClaimedInOrderAndCompleted(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	first := r.adds("one", api.NewJob{})
	r.adds("two", api.NewJob{})
	r.adds("urgent", api.NewJob{Priority: 9})
	r.adds("later", api.NewJob{DelayMS: 5000})
	for _, body := range []string{"urgent", "one", "two"} {
		job := r.gets(body)
		if job.State != api.JobHeld || job.Holder != r.run.Spec.ID || job.Attempts != 1 {
			t.Errorf("%+v", job)
		}
		_, err := r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: job.ID, Result: encode(`"done"`)})
		must(t, err)
	}
	r.none()
	r.later(5 * time.Second)
	r.gets("later")
	job := answerOf[api.JobResult](t)(r.asAgent(agents.JobGet.Name, api.JobGetParams{ID: first.ID})).Job
	if job.State != api.JobDone || string(job.Result) != `"done"` || job.Sender != "worker" {
		t.Errorf("%+v", job)
	}
}

func TestAClaimWaitsForAJob(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	worker := r.works(1000, "", "other")
	came := make(chan api.Job, 1)
	go func() {
		came <- answerOf[api.JobResult](t)(worker.asAgent(agents.JobClaim.Name, api.JobClaimParams{Queue: "builds"})).Job
	}()
	time.Sleep(50 * time.Millisecond)
	r.adds("one", api.NewJob{})
	if job := <-came; string(job.Body) != `"one"` || job.Holder != worker.run.Spec.ID {
		t.Errorf("%+v", job)
	}
}

// A claim that waits gets the job of a run that has ended when the pause is over, without another call.
func TestAFreedJobIsClaimedAfterItsPause(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{BackoffMS: 1000})
	worker := r.works(1000, "", "other")
	r.adds("one", api.NewJob{})
	worker.gets("one")
	worker.ended(agent.RunEnded)
	time.Sleep(50 * time.Millisecond) // what was called before has looked
	r.clock.Add(2)
	got := answerOf[api.JobResult](t)(r.asAgent(agents.JobClaim.Name, api.JobClaimParams{Queue: "builds", Within: api.Within{WithinMS: 20_000}})).Job
	if string(got.Body) != `"one"` || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}
}

// A lease that runs out, a holder that ends and one that fails give the job back, behind a pause that doubles. Who
// held it then holds it no more.
func TestAJobComesBackFromItsHolder(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{LeaseMS: 30_000, BackoffMS: 2000, Attempts: 4})
	worker := r.works(1000, "", "other")
	r.adds("one", api.NewJob{})
	job := r.gets("one")
	r.later(29 * time.Second)
	renewed := answerOf[api.JobResult](t)(r.asAgent(agents.JobRenew.Name, api.JobParams{ID: job.ID})).Job
	if want := r.config.Clock().Add(30 * time.Second); !renewed.Until.Equal(want) {
		t.Errorf("until %s, want %s", renewed.Until, want)
	}
	r.later(29 * time.Second)
	worker.none()
	r.clock.Add(1)
	for _, method := range []string{agents.JobRenew.Name, agents.JobComplete.Name} {
		_, err := r.asAgent(method, api.JobParams{ID: job.ID})
		wantCode(t, err, api.CodeNotFound)
	}
	r.later(0)
	worker.none()
	r.later(2 * time.Second)
	job = worker.gets("one")
	worker.ended(agent.RunEnded)
	if now := r.shows(job.ID); now.State != api.JobDelayed || now.Why != "its holder ended" || !now.Due.Equal(r.config.Clock().Add(4*time.Second)) {
		t.Errorf("%+v", now)
	}
	r.later(4 * time.Second)
	r.gets("one")
	failed := answerOf[api.JobResult](t)(r.asAgent(agents.JobFail.Name, api.JobFailParams{ID: job.ID, Why: "no disk"})).Job
	if failed.State != api.JobDelayed || failed.Why != "no disk" || failed.Attempts != 3 {
		t.Errorf("%+v", failed)
	}
	r.later(8 * time.Second)
	r.gets("one")
	failed = answerOf[api.JobResult](t)(r.asAgent(agents.JobFail.Name, api.JobFailParams{ID: job.ID, Why: "no disk"})).Job
	if failed.State != api.JobDead {
		t.Errorf("%+v", failed)
	}
	_, err := asks[api.JobResult](r, 1000, methods.JobsRetry.Name, api.JobParams{ID: job.ID})
	must(t, err)
	if job = r.gets("one"); job.Attempts != 1 {
		t.Errorf("%+v", job)
	}
}

func TestADeadlineEndsAJob(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	waiting := r.adds("waits", api.NewJob{DeadlineMS: 5000})
	held := r.adds("held", api.NewJob{DeadlineMS: 5000, Priority: 1})
	r.gets("held")
	r.clock.Add(5)
	_, err := r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: held.ID})
	wantCode(t, err, api.CodeNotFound)
	r.later(0)
	for _, job := range []api.Job{waiting, held} {
		if now := r.shows(job.ID); now.State != api.JobDead || !strings.Contains(now.Why, "deadline") {
			t.Errorf("%+v", now)
		}
	}
}

// What a completion carries is done with it, or neither is.
func TestCompletionCarriesCalls(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	r.adds("one", api.NewJob{})
	job := r.gets("one")
	next := func(queue string) []api.ThenCall {
		return []api.ThenCall{{Method: agents.JobAdd.Name, Params: encode(fmt.Sprintf(`{"queue":%q,"body":2}`, queue))}}
	}
	_, err := r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: job.ID, Then: next("none")})
	wantCode(t, err, api.CodeNotFound)
	if now := r.shows(job.ID); now.State != api.JobHeld {
		t.Errorf("%+v", now)
	}
	result := answerOf[api.JobCompleteResult](t)(r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: job.ID, Then: next("builds")}))
	var added api.JobResult
	must(t, json.Unmarshal(result.Results[0], &added))
	if job, found := r.claims(); !found || job.ID != added.Job.ID {
		t.Errorf("%v %+v", found, job)
	}
	_, err = r.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: added.Job.ID, Then: []api.ThenCall{{Method: agents.JobClaim.Name, Params: encode(`{"queue":"builds"}`)}}})
	wantCode(t, err, api.CodeParams)
}

// Of 64 callers at once each gets another job, and no more hold one than the queue allows: while as many hold one as
// may, the others wait, and one more is refused.
func TestNoJobIsHeldByTwo(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{Concurrency: 20})
	const callers, all, atOnce = 64, 200, 20
	workers := make([]*rig, callers)
	for i := range workers {
		workers[i] = r.works(1000, "", fmt.Sprint("w", i))
	}
	var mu sync.Mutex
	holders, done, most := map[string]bool{}, map[string]int{}, 0
	enough, gate := make(chan struct{}), make(chan struct{})
	for i := range all {
		r.adds(fmt.Sprint(i), api.NewJob{})
	}
	var once sync.Once
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for {
				text, err := w.asAgent(agents.JobClaim.Name, `{"queue":"builds","within_ms":3000}`)
				if err != nil {
					return
				}
				job := answerOf[api.JobResult](t)(text, nil).Job
				mu.Lock()
				if holders[job.ID] {
					t.Errorf("%s is held twice", job.Body)
				}
				holders[job.ID] = true
				if most = max(most, len(holders)); len(holders) == atOnce {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
				<-gate
				mu.Lock()
				delete(holders, job.ID)
				done[string(job.Body)]++
				mu.Unlock()
				w.completes(job.ID)
			}
		})
	}
	<-enough
	r.none()
	close(gate)
	group.Wait()
	if len(done) != all {
		t.Errorf("%d of %d are done", len(done), all)
	}
	for body, times := range done {
		if times != 1 {
			t.Errorf("%s was done %d times", body, times)
		}
	}
	if most > atOnce {
		t.Errorf("%d were held at once", most)
	}
}

// jobBodies are those of all jobs by their state. What the boxes count must be what is in them.
func (r *rig) jobBodies() map[string][]string {
	r.t.Helper()
	all := map[string][]string{}
	must(r.t, r.engine.Read(func(tx *store.KernelTx) error {
		counts := map[string][4]int{}
		for i, table := range []store.Table[lease.Message]{lease.Messages, lease.Letters, lease.Finished} {
			found, err := table.Below(tx, "")
			must(r.t, err)
			for _, m := range found {
				state := []string{"open", api.JobDead, api.JobDone}[i]
				all[state] = append(all[state], string(m.Body))
				count := counts[m.Box]
				count[i]++
				if m.Work.Holder != "" && i == 0 {
					count[3]++
				}
				counts[m.Box] = count
			}
		}
		boxes, err := lease.Boxes.Below(tx, "")
		for _, b := range boxes {
			if has := [4]int{b.Messages, b.Dead, b.Done, b.Held}; has != counts[b.ID()] {
				r.t.Errorf("%s counts %v: there are %v", b.Name, has, counts[b.ID()])
			}
		}
		return err
	}))
	for _, bodies := range all {
		slices.Sort(bodies)
	}
	return all
}
