package kernel

import (
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// bell is a shop with a reserved name that mail wakes, and an agent that may send to it.
type bell struct {
	idle time.Duration // of its runs; 0: shortIdle
	*shop
	sender agent.Run
}

func newBell(t *testing.T) *bell {
	t.Helper()
	b := &bell{shop: &shop{newFamily(t, sheetOf(agent.Kernel{Socket: true}), agent.Kernel{Grants: []string{"send:*"}})}}
	b.sender = b.run
	_, err := asks[api.NameResult](b.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "helper", Manifest: "worker"})
	must(t, err)
	must(t, b.RecoverChildren())
	return b
}

func (b *bell) rings(to string, wake bool) error {
	_, err := b.as(b.sender, agents.MailSend.Name, api.MailSendParams{To: to, Body: encode(`"hello"`), Wake: wake})
	return err
}

// woken waits until so many runs were started, and returns the newest.
func (b *bell) woken(count int) agent.Run {
	b.t.Helper()
	b.until("a run is started", func() bool { return len(b.runs.begun()) >= count })
	time.Sleep(20 * time.Millisecond)
	all := b.runs.begun()
	if len(all) != count {
		b.t.Fatalf("%d runs, want %d", len(all), count)
	}
	run, _ := b.runs.Get(all[count-1])
	return run
}

func (f *fakeRuns) begun() []agent.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]agent.ID(nil), f.queued...)
}

// lives attaches a run as its supervisor does, and returns its rig.
func (b *bell) lives(run agent.Run) *rig {
	b.t.Helper()
	r := b.rig.as(run)
	return r
}

func (b *bell) mail(r *rig, most int) []api.Mail {
	b.t.Helper()
	return answerOf[api.MailReceiveResult](b.t)(r.asAgent(agents.MailReceive.Name, api.MailReceiveParams{Most: most})).Messages
}

// 64 senders at once start one run. It holds the name and has all of the mail, and what is sent while it lives starts
// no other.
func TestManySendersWakeOneRun(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			if err := b.rings("helper", true); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	run := b.woken(1)
	if run.Parent != "" || run.Owner.UID != 1000 || len(run.Spec.Command) != 1 || run.Spec.Command[0] != "/bin/true" || b.runs.inputs[run.Spec.ID] != "" {
		t.Errorf("%+v", run)
	}
	r := b.lives(run)
	if all := b.mail(r, 64); len(all) != 64 {
		t.Errorf("%d messages", len(all))
	}
	must(t, b.rings("helper", true))
	b.woken(1)
	name := answerOf[api.NameResult](t)(r.asAgent(agents.NameLookup.Name, api.NameLookupParams{Name: "helper"})).Name
	if len(name.Holders) != 1 || name.Holders[0].Run != run.Spec.ID {
		t.Errorf("%+v", name)
	}
}

// Mail without wake starts nothing, and neither does wake to what has no manifest: that is refused, and not sent.
func TestOnlyWakeStarts(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	_, err := asks[api.NameResult](b.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "plain"})
	must(t, err)
	must(t, b.rings("helper", false))
	wantCode(t, b.rings("plain", true), api.CodeConflict)
	wantCode(t, b.rings("lead", true), api.CodeConflict)
	wantCode(t, b.rings("nobody", true), api.CodeNotFound)
	time.Sleep(50 * time.Millisecond)
	if n := len(b.runs.begun()); n != 0 {
		t.Errorf("%d runs", n)
	}
	boxes, err := asks[api.MailBoxesResult](b.rig, 1000, methods.MailBoxes.Name, api.MailBoxesParams{})
	must(t, err)
	if len(boxes.Mailboxes) != 1 || boxes.Mailboxes[0].Messages != 1 {
		t.Errorf("%+v", boxes)
	}
	must(t, b.rings("helper", true)) // the control
	if all := b.mail(b.lives(b.woken(1)), 64); len(all) != 2 {
		t.Errorf("%d messages", len(all))
	}
	b.add("deaf", sheetOf(agent.Kernel{}))
	for _, manifest := range []string{"deaf", "missing"} {
		if _, err = asks[api.NameResult](b.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "other", Manifest: manifest}); err == nil || api.ErrorOf(err).Data.Hint == "" {
			t.Error(manifest, err)
		}
	}
}

// A new cloved starts what was to be started, once.
func TestWakingSurvivesARestart(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	b.runs.mu.Lock()
	b.runs.stuck = true
	b.runs.mu.Unlock()
	must(t, b.rings("helper", true))
	b.Kernel.starts.Store(false)
	b.close()
	b.runs.mu.Lock()
	b.runs.stuck = false
	b.runs.mu.Unlock()
	b.open()
	must(t, b.RecoverChildren())
	run := b.woken(1)
	b.close()
	b.open()
	must(t, b.RecoverChildren())
	b.woken(1)
	if all := b.mail(b.lives(run), 64); len(all) != 1 {
		t.Errorf("%d messages", len(all))
	}
}

// What a run leaves is for the next one, which is started after a pause; after three in a row only a new message
// starts one.
func TestMailThatIsLeftWakesAgain(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	must(t, b.rings("helper", true))
	for n := 1; n <= 3; n++ {
		run := b.woken(n)
		if all := b.mail(b.lives(run), 64); len(all) != 1 {
			t.Errorf("%d messages", len(all))
		}
		b.over(run.Spec.ID, *new(exited(0)))
		b.woken(n)
		b.later(time.Minute)
		b.Kernel.alarm.set(b.config.Clock())
	}
	b.woken(3)
	names, err := asks[api.NameListResult](b.rig, 1000, methods.NameQuery.Name, api.NameQueryParams{})
	must(t, err)
	if len(names.Names) != 1 || !strings.Contains(names.Names[0].Why, "3 runs have ended") {
		t.Errorf("%+v", names)
	}
	must(t, b.rings("helper", true))
	run := b.woken(4)
	r := b.lives(run)
	all := b.mail(r, 64)
	_, err = r.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: []string{all[0].ID, all[1].ID}})
	must(t, err)
	b.over(run.Spec.ID, *new(exited(0)))
	b.later(time.Minute)
	b.Kernel.alarm.set(b.config.Clock())
	b.woken(4)
}

// The run is removed with its end, and what it has rejected is not: the name keeps it.
func TestAWokenRunsDeadLettersStay(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	must(t, b.rings("helper", true))
	run := b.woken(1)
	r := b.lives(run)
	all := b.mail(r, 1)
	_, err := r.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: []string{all[0].ID}, Reject: "no"})
	must(t, err)
	b.over(run.Spec.ID, *new(exited(0)))
	must(t, b.Happened(agent.RunEvent{Time: b.config.Clock(), Kind: agent.RunRemoved, ID: run.Spec.ID, Name: run.Spec.Name, Owner: run.Owner}, ""))
	dead, err := asks[api.MailDeadResult](b.rig, 1000, methods.MailDead.Name, api.MailDeadParams{Mailbox: "helper"})
	must(t, err)
	if len(dead.Letters) != 1 || dead.Letters[0].Why != "rejected: no" {
		t.Errorf("%+v", dead)
	}
}
