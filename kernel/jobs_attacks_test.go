package kernel

import (
	"fmt"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Jobs and queues of another owner, another namespace and another run are reported as ones that do not exist. The
// control is the same call of one that may.
func TestOthersJobsAreNotThere(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	job := r.adds("secret", api.NewJob{})
	miss := "7f53fc0d448c612a312257f1776fe4bf/90000000000000099"
	own, beside := r.gets("secret"), r.works(1000, "", "beside")
	others := map[string]*rig{"another run": beside, "another namespace": r.works(1000, "acme", "other"), "another owner": r.works(1001, "", "theirs")}
	for name, other := range others {
		for _, method := range []string{agents.JobGet.Name, agents.JobRenew.Name, agents.JobComplete.Name, agents.JobFail.Name} {
			params := func(id string) string {
				if method == agents.JobFail.Name {
					return fmt.Sprintf(`{"id":%q,"why":"x"}`, id)
				}
				return fmt.Sprintf(`{"id":%q}`, id)
			}
			_, err := other.asAgent(method, params(job.ID))
			_, missed := other.asAgent(method, params(miss))
			same(t, name+" "+method, err, missed, job.ID, miss)
		}
		if name == "another run" {
			continue
		}
		for _, method := range []string{agents.JobAdd.Name, agents.JobClaim.Name} {
			params := func(queue string) string {
				if method == agents.JobAdd.Name {
					return fmt.Sprintf(`{"queue":%q,"body":1}`, queue)
				}
				return fmt.Sprintf(`{"queue":%q,"within_ms":1}`, queue)
			}
			_, err := other.asAgent(method, params("builds"))
			wantCode(t, err, api.CodeNotFound)
			if api.ErrorOf(err).Data.Rule == api.RuleWithin {
				t.Errorf("%s waits in a queue that it has not", name)
			}
		}
	}
	for _, method := range []string{methods.JobsShow.Name, methods.JobsRetry.Name, methods.JobsCancel.Name} {
		_, err := asks[api.JobResult](r, 1001, method, api.JobGetParams{ID: job.ID})
		_, missed := asks[api.JobResult](r, 1001, method, api.JobGetParams{ID: miss})
		same(t, method, err, missed, job.ID, miss)
	}
	for _, uid := range []uint32{1000, 1001, 0} {
		all, err := asks[api.JobsListResult](r, uid, methods.JobsList.Name, api.JobsListParams{})
		must(t, err)
		if sees := len(all.Jobs) == 1; sees != (uid != 1001) {
			t.Errorf("user %d sees %v", uid, all.Jobs)
		}
	}
	_, err := asks[api.QueueResult](r, 1001, methods.QueueAdd.Name, api.QueueAddParams{Name: "builds", Owner: new(uint32(1000))})
	wantCode(t, err, api.CodeDenied)
	_, err = asks[api.QueueResult](r, 1001, methods.QueueAdd.Name, api.QueueAddParams{Name: "mine", Manifest: "worker"})
	wantCode(t, err, api.CodeNotFound)
	r.completes(own.ID)
}

// same requires that two refusals differ only in the id that was asked for.
func same(t *testing.T, what string, err, missed error, id, miss string) {
	t.Helper()
	if err == nil || missed == nil {
		t.Fatalf("%s: %v, %v", what, err, missed)
	}
	got, want := api.ErrorOf(err), api.ErrorOf(missed)
	if got.Code != want.Code || got.Data.Hint != want.Data.Hint || got.Data.Rule != want.Data.Rule || len(got.Message) != len(want.Message) || fmt.Sprintf("%q", id) == "" || miss == "" {
		t.Errorf("%s: %v %+v, and of none %v %+v", what, got, got.Data, want, want.Data)
	}
}

// Each part of jobs needs its grant. The control is the run that has them.
func TestJobsNeedGrants(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	none := r.as(newRun(1000, agent.Kernel{Grants: []string{"send:other", "name:other"}}))
	add, claim := `{"queue":"builds","body":1}`, `{"queue":"builds","within_ms":1}`
	_, err := none.asAgent(agents.JobAdd.Name, add)
	wantCode(t, err, api.CodeDenied)
	_, err = r.asAgent(agents.JobAdd.Name, add)
	must(t, err)
	_, err = none.asAgent(agents.JobClaim.Name, claim)
	wantCode(t, err, api.CodeDenied)
	_, err = r.asAgent(agents.JobClaim.Name, claim)
	must(t, err)
	// One that may claim cannot take the queue's mail by its name, and one that may add sends no mail to it.
	_, err = r.asAgent(agents.NameRegister.Name, `{"name":"job/builds"}`)
	wantCode(t, err, api.CodeParams)
	_, err = r.asAgent(agents.MailSend.Name, `{"to":"job/builds","body":1}`)
	wantCode(t, err, api.CodeParams)
}

// A grant that is revoked while a claim waits gives it no job.
func TestAClaimThatWaitsNeedsItsGrant(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	worker := r.works(1000, "", "other")
	answered := make(chan error, 1)
	go func() {
		_, err := worker.asAgent(agents.JobClaim.Name, `{"queue":"builds"}`)
		answered <- err
	}()
	time.Sleep(50 * time.Millisecond)
	_, err := worker.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: worker.grants()["name:job/builds"].ID})
	must(t, err)
	r.adds("one", api.NewJob{})
	wantCode(t, <-answered, api.CodeDenied)
	r.gets("one")
}

// A job that kills each worker is dead after its attempts, and keeps no other from being done.
func TestAPoisonedJobIsBounded(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{Attempts: 3})
	poison := r.adds("poison", api.NewJob{Priority: 9})
	r.adds("good", api.NewJob{})
	worker := r.works(1000, "", "other")
	kills := 0
	for range 10 {
		r.later(time.Hour)
		job, found := worker.claims()
		if !found {
			break
		}
		if job.ID != poison.ID {
			worker.completes(job.ID)
			continue
		}
		kills++
		worker.ended(agent.RunEnded)
		worker.attach(true)
	}
	if now := r.shows(poison.ID); kills != 3 || now.State != api.JobDead || now.Why != "its holder ended" {
		t.Errorf("%d lives: %+v", kills, now)
	}
}

// A full queue refuses, and of one whose dead letters are full no job is lost.
func TestAQueueIsBounded(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{Attempts: 1})
	box := lease.QueueBox(1000, "", "builds")
	fill := func(change func(*lease.Box)) {
		must(t, r.within(func(c *service.Call) (out service.Outcome, err error) {
			b, err := lease.Boxes.Get(c.Tx, box.ID())
			must(t, err)
			change(b)
			return out, lease.Boxes.Put(c.Tx, b)
		}))
	}
	job := r.adds("one", api.NewJob{})
	fill(func(b *lease.Box) { b.Messages, b.Dead = lease.Usual, lease.Usual })
	_, err := r.asAgent(agents.JobAdd.Name, `{"queue":"builds","body":1}`)
	wantCode(t, err, api.CodeBusy)
	if api.ErrorOf(err).Data.Rule != api.RuleMailbox {
		t.Error(err)
	}
	r.gets("one")
	_, err = r.asAgent(agents.JobFail.Name, api.JobFailParams{ID: job.ID, Why: "no"})
	must(t, err)
	if now := r.shows(job.ID); now.State != api.JobDelayed {
		t.Errorf("%+v", now)
	}
	r.later(2 * time.Minute)
	r.none()
	fill(func(b *lease.Box) { b.Messages, b.Dead = 1, 0 })
	r.later(2 * time.Minute)
	if now := r.shows(job.ID); now.State != api.JobDead || now.Why != "no" {
		t.Errorf("%+v", now)
	}
}

// The last jobs that are done are kept, in the order in which they were done.
func TestDoneJobsAreBounded(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	for i := range 260 {
		r.adds(fmt.Sprint(i), api.NewJob{Priority: i % 3})
		job, _ := r.claims()
		r.completes(job.ID)
	}
	done := r.jobBodies()[api.JobDone]
	if len(done) != 256 {
		t.Errorf("%d are kept", len(done))
	}
	for _, body := range done {
		if body == `"0"` || body == `"3"` {
			t.Errorf("%s is kept", body)
		}
	}
}

// A repetition of a claim with its key returns the same job.
func TestAClaimWithAKeyIsRepeated(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	r.adds("one", api.NewJob{})
	r.adds("two", api.NewJob{})
	claim := api.JobClaimParams{Queue: "builds", Keyed: api.Keyed{Key: "k"}}
	first := answerOf[api.JobResult](t)(r.asAgent(agents.JobClaim.Name, claim)).Job
	again := answerOf[api.JobResult](t)(r.asAgent(agents.JobClaim.Name, claim)).Job
	if first.ID != again.ID || again.Attempts != 1 {
		t.Errorf("%+v, %+v", first, again)
	}
	r.gets("two")
}

// What a call of a user's could not say is refused, and nothing is made.
func TestBadJobsAreRefused(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	for method, all := range map[string][]string{
		methods.QueueAdd.Name: {`{"name":""}`, `{"name":"a b"}`, `{"name":"*"}`, `{"name":"q","attempts":101}`, `{"name":"q","lease_ms":1}`, `{"name":"q","backoff_ms":-1}`, `{"name":"q","concurrency":-1}`,
			`{"name":"q","namespace":"/x"}`},
		methods.JobsAdd.Name: {`{"queue":"builds","body":1,"priority":10}`, `{"queue":"builds","body":1,"delay_ms":-1}`, `{"queue":"builds","body":1,"deadline_ms":-1}`, `{"queue":"builds","body":1,"attempts":-1}`},
	} {
		for _, params := range all {
			_, err := asks[api.Nothing](r, 1000, method, params)
			if err == nil || api.ErrorOf(err).Code != api.CodeParams && api.ErrorOf(err).Code != api.CodeTooLarge {
				t.Errorf("%s %s: %v", method, params, err)
			}
		}
	}
	must(t, r.engine.Read(func(tx *store.KernelTx) error {
		all, err := lease.Messages.Below(tx, "")
		if len(all) != 0 {
			t.Error(all)
		}
		return err
	}))
}
