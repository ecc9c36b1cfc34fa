package mail

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Collect moves mail that waits for a name to the call's run, which holds it.
func Collect(c *service.Call, name string, out *service.Outcome) error {
	from, to := lease.NameBox(c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, name), boxOf(c.Run)
	moved, err := lease.Move(c.Tx, from, to, c.Now, func(*lease.Message) bool { return true })
	if moved > 0 {
		out.Topics = append(out.Topics, Room(from.Owner))
		told(out, c.Run.Spec.ID, to, name)
	}
	return err
}

// Return moves what a run has not acknowledged of the mail by a name that it holds no more: to the next
// holder, and what that has no place for, or where there is none, back to the name if it is reserved. The
// rest stays.
func Return(tx *store.KernelTx, run agent.ID, owner uint32, namespace, name string, next agent.ID, reserved bool, now time.Time) (out service.Outcome, err error) {
	out.Topics = append(out.Topics, Room(owner))
	from, by := lease.RunBox(owner, run), func(m *lease.Message) bool { return m.Via == name }
	if next != "" {
		to := lease.RunBox(owner, next)
		var moved int
		if moved, err = lease.Move(tx, from, to, now, by); moved > 0 {
			told(&out, next, to, name)
		}
	}
	if err == nil && reserved {
		_, err = lease.Move(tx, from, lease.NameBox(owner, namespace, name), now, by)
	}
	return out, err
}

// KeepLetters gives a reserved name the dead letters of a run that came by the name: the run is removed with its end.
func KeepLetters(tx *store.KernelTx, run agent.ID, owner uint32, namespace, name string) error {
	return lease.MoveLetters(tx, lease.RunBox(owner, run), lease.NameBox(owner, namespace, name), func(m *lease.Message) bool { return m.Via == name })
}

// Has reports whether a run has mail.
func Has(tx *store.KernelTx, run agent.Run) (bool, error) {
	b, err := lease.Boxes.Get(tx, boxOf(run).ID())
	return b != nil && b.Messages > 0, err
}

// Waits reports whether mail that starts a run waits for a name.
func Waits(now func() time.Time) func(tx *store.KernelTx, owner uint32, namespace, name string) (bool, error) {
	return func(tx *store.KernelTx, owner uint32, namespace, name string) (bool, error) {
		return lease.Wakes(tx, lease.NameBox(owner, namespace, name), now())
	}
}

// Removed refuses to remove a name while mail waits for it, and forgets its mailbox, unless people have to
// look at dead letters in it.
func Removed(tx *store.KernelTx, owner uint32, namespace, name string) error {
	of := lease.NameBox(owner, namespace, name)
	box, err := lease.Boxes.Get(tx, of.ID())
	switch {
	case err != nil || box == nil || box.Messages == 0 && box.Dead > 0:
		return err
	case box.Messages > 0:
		return api.Failure(api.CodeConflict, "have a run register the name and take it", "%d messages wait for %s", box.Messages, name)
	}
	return lease.Forget(tx, of)
}
