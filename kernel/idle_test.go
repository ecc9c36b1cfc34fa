package kernel

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
)

// shortIdle is less than a spec may have.
const shortIdle = 40 * time.Millisecond

// rests is a bell whose runs are ended when they are idle. The test ends them.
func rests(t *testing.T) *bell {
	b := newBell(t)
	b.runs.mu.Lock()
	b.runs.idle = make(chan agent.ID, 1000)
	b.runs.mu.Unlock()
	return b
}

// wakes starts a run by mail and attaches it.
func (b *bell) wakes(n int) *rig {
	b.t.Helper()
	must(b.t, b.rings("helper", true))
	return b.idles(b.woken(n))
}

// idles attaches a run that is ended when it is idle.
func (b *bell) idles(run agent.Run) *rig {
	b.t.Helper()
	run.Spec.Kernel.Idle = cmp.Or(b.idle, shortIdle)
	return b.lives(run)
}

// isIdle waits until a run was asked to end.
func (b *bell) isIdle(r *rig) {
	b.t.Helper()
	select {
	case id := <-b.runs.idle:
		if id != r.run.Spec.ID {
			b.t.Fatalf("%s ends, want %s", id, r.run.Spec.ID)
		}
	case <-time.After(patience):
		b.t.Fatal("it is never idle")
	}
}

// goesOn requires that no run is asked to end for many times the time of an idle one.
func (b *bell) goesOn(why string) {
	b.t.Helper()
	select {
	case id := <-b.runs.idle:
		b.t.Errorf("%s was ended: %s", id, why)
	case <-time.After(max(10*shortIdle, 3*b.idle)):
	}
}

// waits has an agent wait for mail, until the test ends, and returns what that gets.
func (b *bell) waits(r *rig, method string, params any) <-chan error {
	answered := make(chan error, 1)
	go func() {
		_, err := r.asAgent(method, params)
		answered <- err
	}()
	return answered
}

func (b *bell) takesAll(r *rig) {
	b.t.Helper()
	for _, m := range b.mail(r, 64) {
		_, err := r.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: []string{m.ID}})
		must(b.t, err)
	}
}

func ended(status agent.Status) spawn.End { return spawn.End{Record: agent.Record{Status: status}} }

// An agent that only waits is ended, also one that asks again and again. One that works is not: it has no call, or
// another one, mail that it has not acknowledged, a job or a child.
func TestOnlyAWaitingAgentIsIdle(t *testing.T) {
	t.Parallel()
	wait := func(b *bell, r *rig) { b.waits(r, agents.MailReceive.Name, api.MailReceiveParams{}) }
	queue := func(b *bell) {
		_, err := asks[api.QueueResult](b.rig, 1000, methods.QueueAdd.Name, api.QueueAddParams{Name: "tasks"})
		must(b.t, err)
	}
	for name, row := range map[string]struct {
		idle bool
		do   func(b *bell, r *rig)
	}{
		"waits for mail": {true, wait},
		"waits for a job": {true, func(b *bell, r *rig) {
			queue(b)
			b.waits(r, agents.JobClaim.Name, api.JobClaimParams{Queue: "tasks"})
		}},
		"waits for both": {true, func(b *bell, r *rig) {
			queue(b)
			b.waits(r, agents.JobClaim.Name, api.JobClaimParams{Queue: "tasks"})
			wait(b, r)
		}},
		"asks again and again": {true, func(b *bell, r *rig) {
			go func() {
				for range 500 {
					_, _ = r.asAgent(agents.MailReceive.Name, api.MailReceiveParams{Within: api.Within{WithinMS: 10}})
				}
			}()
		}},
		"works": {false, func(*bell, *rig) {}},
		"works between two waits": {false, func(b *bell, r *rig) {
			for range 5 {
				_, _ = r.asAgent(agents.MailReceive.Name, api.MailReceiveParams{Within: api.Within{WithinMS: 15}})
				_, err := r.asAgent(agents.GrantList.Name, api.Nothing{})
				must(b.t, err)
			}
		}},
		"waits beside other work": {false, func(b *bell, r *rig) {
			wait(b, r)
			b.waits(r, agents.MailAnswer.Name, api.MailAnswerParams{ID: "0123456789abcdef0123456789abcdef/90000000000000001", Within: api.Within{WithinMS: 2000}})
		}},
		"has mail": {false, func(b *bell, r *rig) {
			must(b.t, b.rings("helper", false))
			b.waits(r, agents.MailReceive.Name, api.MailReceiveParams{After: b.mail(r, 1)[0].ID})
		}},
		"holds a job": {false, func(b *bell, r *rig) {
			queue(b)
			_, err := asks[api.JobResult](b.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{NewJob: api.NewJob{Queue: "tasks", Body: encode(`1`)}})
			must(b.t, err)
			_, err = r.asAgent(agents.JobClaim.Name, api.JobClaimParams{Queue: "tasks"})
			must(b.t, err)
			wait(b, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rests(t)
			b.idle = 500 * time.Millisecond // an agent of a busy machine waits longer than it asks
			queued := sheetOf(agent.Kernel{Grants: []string{"send:job/tasks", "name:job/tasks"}})
			b.add("clerk", queued)
			_, err := asks[api.NameResult](b.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "helper", Manifest: "clerk"})
			must(t, err)
			r := b.wakes(1)
			b.takesAll(r)
			row.do(b, r)
			if row.idle {
				b.isIdle(r)
			} else {
				b.goesOn(name)
			}
		})
	}
}

// A parent whose child lives is not idle.
func TestAnAgentWithChildrenIsNotIdle(t *testing.T) {
	t.Parallel()
	b := rests(t)
	lead := b.run
	lead.Spec.Kernel.Idle = shortIdle
	r := b.lives(lead)
	child := b.spawn(api.SpawnParams{})
	b.queued(child.ID)
	b.waits(r, agents.MailReceive.Name, api.MailReceiveParams{})
	b.goesOn("it has a child")
	b.end(child.ID, exited(0))
	b.isIdle(r) // the control
}

// Mail for a run that is being ended is not given to it. It is for the next run, which is started at once.
func TestMailForAnIdleRunIsForTheNext(t *testing.T) {
	t.Parallel()
	b := rests(t)
	r := b.wakes(1)
	b.takesAll(r)
	answered := b.waits(r, agents.MailReceive.Name, api.MailReceiveParams{Within: api.Within{WithinMS: 1000}})
	b.isIdle(r)
	must(b.t, b.rings("helper", true))
	if err := <-answered; err == nil {
		t.Error("a run that ends has got mail")
	}
	b.woken(1)
	b.over(r.run.Spec.ID, ended(agent.StatusIdle))
	next := b.lives(b.woken(2))
	if all := b.mail(next, 64); len(all) != 1 {
		t.Errorf("%d messages", len(all))
	}
}

// A run that could not be ended goes on, and gets mail again.
func TestARunThatCannotBeEndedGetsMail(t *testing.T) {
	t.Parallel()
	b := rests(t)
	r := b.wakes(1)
	b.takesAll(r)
	answered := b.waits(r, agents.MailReceive.Name, api.MailReceiveParams{})
	b.isIdle(r)
	must(b.t, b.rings("helper", false))
	service.Resume(b.engine, r.run.Spec.ID)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Mail and ends at the same moment: each message is handled once, over many lives of one name.
func TestWakeAndIdleLoseNothing(t *testing.T) {
	t.Parallel()
	b := rests(t)
	const cycles = 40
	var mu sync.Mutex
	handled := map[string]int{}
	live := func(run agent.Run) {
		r := b.idles(run)
		go func() {
			for {
				text, err := r.asAgent(agents.MailReceive.Name, api.MailReceiveParams{Most: 1})
				if err != nil {
					return // of the end of the test, or the wait has lasted too long
				}
				m := answerOf[api.MailReceiveResult](t)(text, nil).Messages[0]
				if _, err = r.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: []string{m.ID}}); err != nil {
					return
				}
				mu.Lock()
				handled[string(m.Body)]++
				mu.Unlock()
			}
		}()
	}
	done := make(chan struct{})
	var lives sync.WaitGroup
	started := 0
	lives.Go(func() {
		for {
			if all := b.runs.begun(); len(all) > started {
				run, _ := b.runs.Get(all[started])
				started++
				live(run)
			}
			select {
			case id := <-b.runs.idle:
				b.over(id, ended(agent.StatusIdle))
			case <-time.After(time.Millisecond):
			case <-done:
				return
			}
		}
	})
	for n := range cycles {
		_, err := b.as(b.sender, agents.MailSend.Name, api.MailSendParams{To: "helper", Body: encode(fmt.Sprintf("%d", n)), Wake: true})
		must(t, err)
		b.until("a message is handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(handled) == n+1 })
		time.Sleep(shortIdle + time.Duration(n%9-4)*time.Millisecond) // about when it ends
	}
	close(done)
	lives.Wait()
	for body, times := range handled {
		if times != 1 {
			t.Errorf("%s was handled %d times", body, times)
		}
	}
	if started < 5 {
		t.Errorf("%d lives: the test has not met an end", started)
	}
}
