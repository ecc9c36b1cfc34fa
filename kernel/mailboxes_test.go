package kernel

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// mailboxes puts a message of 100 bytes into boxes of runs that are gone, and takes it out again where empty.
func (r *rig) mailboxes(number int, empty bool) {
	r.t.Helper()
	must(r.t, r.file.Update(func(tx *store.KernelTx) error {
		for range number {
			box := lease.RunBox(uint32(number%3), agent.NewID())
			m := &lease.Message{Mail: api.Mail{From: agent.NewID(), Sender: "worker", To: "critic", Trace: string(agent.NewID()), Causation: string(agent.NewID()), Sent: r.engine.Now(),
				Expires: r.engine.Now().AddDate(1, 0, 0), Body: json.RawMessage(fmt.Sprintf(`"%098d"`, 1))}}
			err := lease.Put(tx, box, m)
			if err == nil && empty {
				_, err = lease.Take(tx, box, m.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// size is how much of kernel.db is used, in bytes.
func (r *rig) size() int64 {
	r.t.Helper()
	copied := filepath.Join(r.t.TempDir(), "kernel.db")
	must(r.t, r.file.Backup(copied))
	info, err := os.Stat(copied)
	must(r.t, err)
	return info.Size()
}

// A mailbox takes at most 1 KiB of the file.
func TestAMailboxIsSmall(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	before := r.size()
	for range 20 {
		r.mailboxes(100, true)
	}
	if one := (r.size() - before) / 2000; one > 1024 || one < 64 {
		t.Errorf("a mailbox takes %d bytes", one)
	}
}

// text is a row of the boxes as it is stored.
type text struct {
	key  string
	text json.RawMessage
}

func (t *text) MarshalJSON() ([]byte, error) { return t.text, nil }
func (t *text) UnmarshalJSON(b []byte) error { t.text = append(t.text, b...); return nil }

var boxTexts = store.Table[text]{Bucket: "boxes", Noun: "text", Key: func(t *text) string { return t.key },
	Fill: func(t *text, key string) error { t.key = key; return nil }}

// rewritten changes the boxes of a closed file.
func (r *rig) rewritten(change func(*text)) {
	r.t.Helper()
	file, err := store.OpenKernel(filepath.Join(r.dir, "kernel.db"), patience, boxTexts)
	must(r.t, err)
	must(r.t, file.Update(func(tx *store.KernelTx) error {
		all, err := boxTexts.Below(tx, "")
		for _, row := range all {
			if change(row); err == nil {
				err = boxTexts.Put(tx, row)
			}
		}
		return err
	}))
	must(r.t, file.Close())
}

// No call and no timer reads the mailboxes of others, however many there are: here they cannot be read.
func TestOtherMailboxesAreNotRead(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.sent(api.MailSendParams{Body: json.RawMessage(`"first"`)})
	_, err := asks[api.NameResult](p.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "later"})
	must(t, err)
	_, err = asks[api.MailSendResult](p.rig, 1000, methods.MailPost.Name, api.MailPostParams{To: "later", Body: json.RawMessage(`"kept"`)})
	must(t, err)
	p.mailboxes(100, false)
	own := map[string]bool{lease.RunBox(1000, p.other.Spec.ID).ID(): true, lease.NameBox(1000, "", "later").ID(): true}
	kept := map[string]json.RawMessage{}
	p.close()
	p.rewritten(func(row *text) {
		if !own[row.key] {
			kept[row.key], row.text = row.text, json.RawMessage(`"spoilt"`)
		}
	})
	p.open()
	if err := p.file.Read(func(tx *store.KernelTx) error { return lease.Boxes.Each(tx, func(*lease.Box) {}) }); err == nil {
		t.Fatal("the control: all boxes can be read")
	}
	p.attach(true)
	p.sent(api.MailSendParams{Body: json.RawMessage(`"second"`), ExpiresMS: 1000})
	if all := p.received("", 10); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	for _, reference := range []string{"critic", "later", string(p.other.Spec.ID), lease.NameBox(1000, "", "later").ID()} {
		_, err := asks[api.MailReadResult](p.rig, 0, methods.MailRead.Name, api.MailReadParams{Mailbox: reference})
		must(t, err)
	}
	_, err = asks[api.MailReadResult](p.rig, 0, methods.MailRead.Name, api.MailReadParams{Mailbox: "typo"})
	wantCode(t, err, api.CodeNotFound)
	p.clock.Add(2)
	must(t, p.expireMail())
	n, err := p.Counts(nil, nil)
	if must(t, err); n.Mailboxes != 102 || n.Messages != 102 || n.DeadLetters != 1 {
		t.Errorf("%+v", n)
	}
	must(t, p.Kernel.Close())
	must(t, p.log.Close())
	must(t, p.file.Close())
	p.rewritten(func(row *text) {
		if kept[row.key] != nil {
			row.text = kept[row.key]
		}
	})
	p.open()
}
