package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/spawn"
)

// shop is a family with queues that have a manifest.
type shop struct{ *family }

func newShop(t *testing.T, settings ...api.QueueAddParams) *shop {
	t.Helper()
	s := &shop{newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{})}
	s.takes(settings...)
	return s
}

// takes adds queues whose jobs clove starts.
func (s *shop) takes(settings ...api.QueueAddParams) {
	s.t.Helper()
	for _, q := range settings {
		q.Name, q.Manifest = cmp.Or(q.Name, "builds"), cmp.Or(q.Manifest, "worker")
		_, err := asks[api.QueueResult](s.rig, 1000, methods.QueueAdd.Name, q)
		must(s.t, err)
	}
	must(s.t, s.RecoverChildren())
}

func (s *shop) posts(queue, body string, p api.NewJob) api.Job {
	s.t.Helper()
	p.Queue, p.Body = queue, encode(fmt.Sprintf("%q", body))
	result, err := asks[api.JobResult](s.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{NewJob: p})
	must(s.t, err)
	return result.Job
}

// working are the runs that were started for jobs and have not ended, by their standard input.
func (s *shop) working() map[string]agent.ID {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	all := map[string]agent.ID{}
	for id, input := range s.runs.inputs {
		if run, found := s.runs.runs[id]; found && run.State != agent.StateEnded {
			all[strings.TrimSpace(input)] = id
		}
	}
	return all
}

// until waits for what must become true.
func (s *shop) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("never: %s", what)
		}
	}
}

// starts waits until a run has a job, and returns it.
func (s *shop) starts(body string) (id agent.ID) {
	s.t.Helper()
	s.until("a run for "+body, func() bool { id = s.working()[fmt.Sprintf("%q", body)]; return id != "" })
	return id
}

// over ends a run as it ends by itself.
func (s *shop) over(id agent.ID, end spawn.End) {
	s.t.Helper()
	s.runs.mu.Lock()
	run := s.runs.runs[id]
	run.State = agent.StateEnded
	s.runs.runs[id], s.runs.ends[id] = run, &end
	s.runs.mu.Unlock()
	must(s.t, s.Happened(agent.RunEvent{Time: s.config.Clock(), Kind: agent.RunEnded, ID: id, Name: run.Spec.Name, Owner: run.Owner}, run.Spec.Kernel.Namespace))
}

func (s *shop) wants(id, state, why string) api.Job {
	s.t.Helper()
	job := s.shows(id)
	if job.State != state || job.Why != why {
		s.t.Errorf("%s %q, want %s %q: %+v", job.State, job.Why, state, why, job)
	}
	return job
}

// A run is started for each job, and no more at once than the queue allows. It has what the manifest says, and the
// job as its standard input.
func TestARunIsStartedForEachJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Concurrency: 2, Attempts: 2})
	var all []api.Job
	for _, body := range []string{"one", "two", "three"} {
		all = append(all, s.posts("builds", body, api.NewJob{}))
	}
	one := s.starts("one")
	s.starts("two")
	run, _ := s.runs.Get(one)
	if run.Parent != "" || run.Owner.UID != 1000 || !slices.Equal(run.Spec.Command, agent.RawStrings{"/bin/true"}) || !strings.HasPrefix(run.Spec.Name, "worker-") {
		t.Errorf("%+v", run)
	}
	if job := s.wants(all[0].ID, api.JobHeld, ""); job.Holder != one || !job.Until.IsZero() {
		t.Errorf("%+v", job)
	}
	time.Sleep(50 * time.Millisecond)
	if working := s.working(); len(working) != 2 {
		t.Error(working)
	}
	s.over(one, spawn.End{Record: exited(0).Record, Output: "built"})
	if job := s.wants(all[0].ID, api.JobDone, ""); job.Output != "built" {
		t.Errorf("%+v", job)
	}
	three := s.starts("three")
	s.over(three, spawn.End{Record: exited(3).Record, Output: "no space"})
	if job := s.wants(all[2].ID, api.JobDelayed, "its run ended: exited, exit status 3"); job.Output != "no space" {
		t.Errorf("%+v", job)
	}
	s.later(2 * time.Second)
	s.Kernel.alarm.set(s.config.Clock())
	again := s.starts("three")
	if again == three {
		t.Error("the same run")
	}
	s.over(again, *new(exited(3)))
	s.wants(all[2].ID, api.JobDead, "its run ended: exited, exit status 3")
}

// What a new cloved finds begun it completes, and starts nothing twice.
func TestStartsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Concurrency: 8})
	one := s.posts("builds", "one", api.NewJob{})
	two := s.posts("builds", "two", api.NewJob{})
	first, second := s.starts("one"), s.starts("two")
	s.runs.mu.Lock()
	s.runs.stuck = true
	s.runs.mu.Unlock()
	three := s.posts("builds", "three", api.NewJob{})
	s.until("the job is held", func() bool { return s.shows(three.ID).State == api.JobHeld })
	s.close()
	s.runs.mu.Lock()
	s.runs.stuck = false
	ended := s.runs.runs[first]
	ended.State = agent.StateEnded
	s.runs.runs[first], s.runs.ends[first] = ended, new(exited(0))
	s.runs.mu.Unlock()
	s.open()
	must(t, s.RecoverChildren())
	s.wants(one.ID, api.JobDone, "")
	s.wants(two.ID, api.JobHeld, "")
	third := s.starts("three")
	if job := s.shows(three.ID); job.Holder != third || job.Attempts != 1 {
		t.Errorf("%+v", job)
	}
	s.over(second, *new(exited(0)))
	s.over(third, *new(exited(0)))
	if n := s.runs.count(); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// A run that completes its job itself is not asked by its exit status, and one whose job was cancelled is ended.
func TestAStartedRunHoldsItsJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Concurrency: 2})
	one := s.posts("builds", "one", api.NewJob{})
	run, _ := s.runs.Get(s.starts("one"))
	other := s.posts("builds", "two", api.NewJob{})
	second := s.starts("two")
	_, err := s.as(run, "job.complete", api.JobCompleteParams{ID: other.ID})
	wantCode(t, err, api.CodeNotFound)
	_, err = s.as(run, "job.complete", api.JobCompleteParams{ID: one.ID, Result: encode("7")})
	must(t, err)
	s.over(run.Spec.ID, *new(exited(1)))
	if job := s.wants(one.ID, api.JobDone, ""); string(job.Result) != "7" {
		t.Errorf("%+v", job)
	}
	_, err = asks[api.JobResult](s.rig, 1000, methods.JobsCancel.Name, api.JobParams{ID: other.ID})
	must(t, err)
	s.until("the run is ended", func() bool {
		s.runs.mu.Lock()
		defer s.runs.mu.Unlock()
		return slices.ContainsFunc(s.runs.signals, func(signal string) bool { return strings.Contains(signal, "KILL") })
	})
	s.over(second, *new(exited(137)))
	_, err = asks[api.JobResult](s.rig, 1000, methods.JobsShow.Name, api.JobGetParams{ID: other.ID})
	wantCode(t, err, api.CodeNotFound)
}

// A manifest that is added later under the same name, a removed one and one of a file that has changed do not run.
func TestAQueueHoldsItsManifest(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Attempts: 1})
	evil := sheetOf(agent.Kernel{})
	evil.Command = agent.RawStrings{"/bin/evil"}
	s.add("worker", evil)
	s.posts("builds", "one", api.NewJob{})
	run, _ := s.runs.Get(s.starts("one"))
	if !slices.Equal(run.Spec.Command, agent.RawStrings{"/bin/true"}) {
		t.Error(run.Spec.Command)
	}
	s.over(run.Spec.ID, *new(exited(0)))
	s.runs.mu.Lock()
	s.runs.refuse = api.Failure(api.CodeConflict, "", "/bin/true is another file")
	s.runs.mu.Unlock()
	two := s.posts("builds", "two", api.NewJob{})
	s.until("it is dead", func() bool { return s.shows(two.ID).State == api.JobDead })
	s.wants(two.ID, api.JobDead, "/bin/true is another file")
	_, err := asks[api.ManifestRemoveResult](s.rig, 1000, methods.ManifestRemove.Name, api.ManifestNameParams{Name: "worker"})
	must(t, err)
	three := s.posts("builds", "three", api.NewJob{})
	s.until("the queue says why", func() bool {
		all, err := asks[api.QueueListResult](s.rig, 1000, methods.QueueList.Name, api.QueueListParams{})
		must(t, err)
		return strings.Contains(all.Queues[0].Why, "was removed")
	})
	s.wants(three.ID, api.JobReady, "")
}

// While nothing is left of a budget nothing starts that would spend from it; the control is another namespace.
func TestASpentBudgetStartsNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, namespace := range []string{"poor", "rich"} {
		s.add(namespace, sheetOf(agent.Kernel{Namespace: namespace}))
		s.takes(api.QueueAddParams{Name: namespace, Manifest: namespace})
	}
	_, err := s.SetBudget(1000, api.BudgetSetParams{Account: "1000/ns:poor", Limits: []string{"reviews=1"}})
	must(t, err)
	spender := s.rig.as(newRun(1000, agent.Kernel{Namespace: "poor", Budgets: []string{"reviews=1"}}))
	spender.charge("reviews", 1)
	post := func(queue string) api.Job {
		result, err := asks[api.JobResult](s.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{Namespace: queue, NewJob: api.NewJob{Queue: queue, Body: encode(fmt.Sprintf("%q", queue))}})
		must(t, err)
		return result.Job
	}
	poor := post("poor")
	post("rich")
	s.starts("rich")
	s.until("the queue says why", func() bool {
		all, err := asks[api.QueueListResult](s.rig, 1000, methods.QueueList.Name, api.QueueListParams{Namespace: new("poor")})
		must(t, err)
		return strings.Contains(all.Queues[0].Why, "nothing is left of reviews")
	})
	s.wants(poor.ID, api.JobReady, "")
	_, err = s.SetBudget(1000, api.BudgetSetParams{Account: "1000/ns:poor", Reset: []string{"reviews"}})
	must(t, err)
	s.Kernel.alarm.set(s.config.Clock())
	s.starts("poor")
}

// A namespace that adds a flood of jobs gets no more starts than one that adds a few: at each moment at most two of
// its runs wait for their start, and the turns are of the namespaces.
func TestStartsTakeTurnsBetweenNamespaces(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.runs.mu.Lock()
	s.runs.slow = true
	s.runs.mu.Unlock()
	for _, namespace := range []string{"flood", "quiet"} {
		s.add(namespace, sheetOf(agent.Kernel{Namespace: namespace}))
		s.takes(api.QueueAddParams{Name: namespace, Manifest: namespace, Concurrency: 64})
	}
	var posts sync.WaitGroup
	post := func(queue string, i int) {
		_, err := asks[api.JobResult](s.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{Namespace: queue, NewJob: api.NewJob{Queue: queue, Body: encode(fmt.Sprintf(`"%s %d"`, queue, i))}})
		must(t, err)
	}
	for i := range 200 {
		posts.Go(func() { post("flood", i) })
	}
	posts.Wait()
	for i := range 4 {
		post("quiet", i)
	}
	count := func(namespace string) (waiting, begun int) {
		s.runs.mu.Lock()
		defer s.runs.mu.Unlock()
		for _, run := range s.runs.runs {
			if run.Spec.Kernel.Namespace == namespace && run.Started.IsZero() {
				waiting++
			} else if run.Spec.Kernel.Namespace == namespace {
				begun++
			}
		}
		return waiting, begun
	}
	s.until("both wait", func() bool {
		flood, _ := count("flood")
		quiet, _ := count("quiet")
		if flood > 2 {
			t.Fatalf("%d of the flood wait", flood)
		}
		return flood == 2 && quiet == 2
	})
	for range 8 { // each time the host has memory for one more
		s.begins()
	}
	_, quiet := count("quiet")
	if quiet != 4 {
		t.Errorf("%d of 4 began behind a flood", quiet)
	}
}

// begins lets the run that has waited longest begin, and waits until others have its place.
func (s *shop) begins() {
	s.t.Helper()
	before := s.runs.count()
	s.runs.mu.Lock()
	for _, id := range s.runs.queued {
		if run := s.runs.runs[id]; run.Started.IsZero() {
			run.Started, run.State = run.Created, agent.StateRunning
			s.runs.runs[id] = run
			s.runs.mu.Unlock()
			must(s.t, s.Happened(agent.RunEvent{Time: s.config.Clock(), Kind: agent.RunStarted, ID: id, Name: run.Spec.Name, Owner: run.Owner}, run.Spec.Kernel.Namespace))
			for deadline := time.Now().Add(time.Second); s.runs.count() == before && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			}
			return
		}
	}
	s.runs.mu.Unlock()
	s.t.Fatal("nothing waits")
}

// A job that fails each run that is started for it is dead after its attempts; of the same queue and of another one the
// others are done meanwhile.
func TestAPoisonedJobOfStartsIsBounded(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Attempts: 3}, api.QueueAddParams{Name: "others"})
	poison := s.posts("builds", "poison", api.NewJob{Priority: 9})
	good, other := s.posts("builds", "good", api.NewJob{}), s.posts("others", "other", api.NewJob{})
	s.over(s.starts("other"), *new(exited(0)))
	lives := 0
	for ; lives < 10 && s.shows(poison.ID).State != api.JobDead; lives++ {
		s.over(s.starts("poison"), *new(exited(137)))
		if lives == 0 {
			s.over(s.starts("good"), *new(exited(0)))
			s.wants(good.ID, api.JobDone, "") // while the other one pauses
		}
		s.later(time.Hour)
		s.Kernel.alarm.set(s.config.Clock())
	}
	if lives != 3 {
		t.Errorf("it had %d lives", lives)
	}
	s.wants(other.ID, api.JobDone, "")
}
