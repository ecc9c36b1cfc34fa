package kernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// stored are the bodies of all messages and letters. What the boxes count must be what is in them.
func (r *rig) stored() (all []string) {
	r.t.Helper()
	must(r.t, r.engine.Read(func(tx *store.KernelTx) error {
		counts := map[string][2]int{}
		for i, table := range []store.Table[lease.Message]{lease.Messages, lease.Letters} {
			found, err := table.Below(tx, "")
			must(r.t, err)
			for _, m := range found {
				all = append(all, string(m.Body))
				count := counts[m.Box]
				count[i]++
				counts[m.Box] = count
			}
		}
		boxes, err := lease.Boxes.Below(tx, "")
		for _, b := range boxes {
			if [2]int{b.Messages, b.Dead} != counts[b.ID()] {
				r.t.Errorf("%s counts %d and %d: there are %v", b.Name, b.Messages, b.Dead, counts[b.ID()])
			}
		}
		return err
	}))
	slices.Sort(all)
	return all
}

// Whatever happens to names and their holders, each message is in one place until it is acknowledged or
// discarded.
func TestNoMailIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	draw := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	sender := newRig(t, agent.Kernel{Grants: []string{"send:*"}})
	_, err := asks[api.NameResult](sender, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "critic"})
	must(t, err)
	workers := []*rig{sender.named(1000, "", "a"), sender.named(1000, "", "b"), sender.named(1000, "", "c")}
	there, sent := map[string]bool{}, 0
	for range 400 {
		w := workers[draw.IntN(len(workers))]
		var expires int64
		switch draw.IntN(10) {
		case 0, 1, 2:
			if draw.IntN(3) == 0 {
				expires = 3000
			}
			sent++
			body := fmt.Sprintf("%q", fmt.Sprint("m", sent))
			to := []string{"critic", "critic", "critic/two", w.run.Spec.Name}[draw.IntN(4)]
			if _, err := sender.asAgent(agents.MailSend.Name, api.MailSendParams{To: to, Body: json.RawMessage(body), ExpiresMS: expires, Priority: draw.IntN(3)}); err == nil {
				there[body] = true
			}
		case 3, 4:
			_, _ = w.register([]string{"critic", "critic/two"}[draw.IntN(2)])
		case 5:
			_, _ = w.asAgent(agents.NameRelease.Name, api.NameParams{Name: "critic"})
		case 6:
			w.ended(agent.RunEnded)
			w.attach(true) // it starts again
		case 7, 8:
			text, err := w.asAgent(agents.MailReceive.Name, `{"within_ms":1}`)
			if err != nil {
				continue
			}
			m := answerOf[api.MailReceiveResult](t)(text, nil).Messages[0]
			p := api.MailAckParams{IDs: []string{m.ID}}
			if draw.IntN(3) == 0 {
				p.Reject = "no"
			} else {
				delete(there, string(m.Body))
			}
			_, err = w.asAgent(agents.MailAck.Name, p)
			must(t, err)
		case 9:
			sender.clock.Add(2)
			must(t, sender.expireMail())
			letters, err := asks[api.MailDeadResult](sender, 1000, methods.MailDead.Name, api.MailDeadParams{})
			must(t, err)
			for i, letter := range letters.Letters {
				method := []string{methods.MailRequeue.Name, methods.MailDiscard.Name}[i%2]
				_, err := asks[api.Nothing](sender, 1000, method, api.MailLetterParams{ID: letter.Letter})
				if must(t, err); i%2 == 1 {
					delete(there, string(letter.Body))
				}
			}
		}
	}
	if got, want := sender.stored(), slices.Sorted(maps.Keys(there)); !slices.Equal(got, want) {
		t.Errorf("there are %d messages of %d:\n%v\n%v", len(got), len(want), got, want)
	}
	if sent < 60 {
		t.Errorf("%d were sent", sent)
	}
}

// Of many messages to a name at once each comes to one holder, and the holders get the same number.
func TestManyTakeTurnsAtOnce(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:critic"}})
	workers := []*rig{sender.named(1000, "", "a"), sender.named(1000, "", "b"), sender.named(1000, "", "c")}
	for _, w := range workers {
		_, err := w.register("critic")
		must(t, err)
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			if err := sender.tell("critic", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, w := range workers {
		if got := w.inbox(); len(got) != 20 {
			t.Errorf("%s has %d", w.run.Spec.Name, len(got))
		}
	}
	if got := sender.stored(); len(slices.Compact(got)) != 60 {
		t.Error(got)
	}
}
