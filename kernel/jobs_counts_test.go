package kernel

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// Jobs are counted by their states, each user's for that user, and are no mail.
func TestJobsAreCounted(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	counts := func(owner *uint32) api.Counts {
		t.Helper()
		n, err := r.Counts(owner, func(agent.ID) bool { return true })
		must(t, err)
		return n
	}
	if n := counts(nil); n.Queues != 1 || n.Jobs != (api.JobCounts{}) || n.Mailboxes != 0 {
		t.Errorf("%+v", n)
	}
	for _, body := range []string{"done", "dead", "failed", "held", "ready", "too"} {
		r.adds(body, api.NewJob{})
	}
	r.adds("delayed", api.NewJob{DelayMS: time.Hour.Milliseconds()})
	r.completes(r.gets("done").ID)
	dead := r.gets("dead").ID
	for _, p := range []api.JobFailParams{{ID: dead, Why: "no", Dead: true}, {ID: r.gets("failed").ID, Why: "no"}} {
		_, err := r.asAgent(agents.JobFail.Name, p)
		must(t, err)
	}
	r.gets("held")
	want := api.JobCounts{Ready: 2, Delayed: 2, Held: 1, Dead: 1, Done: 1}
	for owner, want := range map[uint32]api.JobCounts{1000: want, 1001: {}} {
		if n := counts(&owner); n.Jobs != want || n.Mailboxes+n.Messages+n.DeadLetters != 0 || n.Queues != want.Held {
			t.Errorf("user %d: %+v", owner, n)
		}
	}
	if n := counts(nil); n.Jobs != want {
		t.Errorf("%+v", n)
	}
	// A dead job is no dead letter, which would come back without attempts.
	letters, err := asks[api.MailDeadResult](r, 1000, methods.MailDead.Name, api.MailDeadParams{})
	if must(t, err); len(letters.Letters) != 0 {
		t.Errorf("%+v", letters)
	}
	_, err = asks[api.Nothing](r, 1000, methods.MailRequeue.Name, api.MailLetterParams{ID: dead})
	wantCode(t, err, api.CodeNotFound)
	boxes, err := asks[api.MailBoxesResult](r, 1000, methods.MailBoxes.Name, api.MailBoxesParams{})
	if must(t, err); len(boxes.Mailboxes) != 0 {
		t.Errorf("%+v", boxes)
	}
}
