package lease

import (
	"cmp"
	"time"

	"clove.run/clove/store"
)

// Move moves messages that are chosen from one box to another in their order, as far as there is place.
// An answer to one that was moved answers its first id.
func Move(tx *store.KernelTx, from, to Of, now time.Time, chosen func(*Message) bool) (moved int, err error) {
	source, err := get(tx, from)
	if err != nil || source.Messages == 0 {
		return 0, err
	}
	target, err := get(tx, to)
	if err == nil {
		err = cmp.Or(source.expire(tx, now), target.expire(tx, now))
	}
	if err != nil {
		return 0, err
	}
	all, err := Messages.Below(tx, from.ID()+"/")
	for _, m := range all {
		if err != nil || target.Messages == Usual {
			break
		}
		if !m.Expires.IsZero() && !now.Before(m.Expires) || !chosen(m) {
			continue
		}
		err = cmp.Or(drop(tx, from.Owner, m), Messages.Delete(tx, key(m)))
		source.Messages, target.Messages, target.Last = source.Messages-1, target.Messages+1, target.Last+1
		target.Expires = earliest(target.Expires, m.Expires)
		m.First, m.Box, m.Number = m.Asked(), to.ID(), target.Last
		m.ID = key(m)
		err, moved = cmp.Or(err, refer(tx, to.Owner, m), Messages.Put(tx, m)), moved+1
	}
	if source.Messages == 0 {
		source.Expires = time.Time{}
	}
	return moved, cmp.Or(err, Boxes.Put(tx, source), Boxes.Put(tx, target))
}

// MoveLetters moves dead letters that are chosen from one box to another, as far as there is place.
func MoveLetters(tx *store.KernelTx, from, to Of, chosen func(*Message) bool) error {
	source, err := get(tx, from)
	if err != nil || source.Dead == 0 {
		return err
	}
	target, err := get(tx, to)
	if err != nil {
		return err
	}
	all, err := Letters.Below(tx, from.ID()+"/")
	for _, m := range all {
		if err != nil || target.Dead >= Usual || !chosen(m) {
			continue
		}
		err = cmp.Or(drop(tx, from.Owner, m), Letters.Delete(tx, key(m)))
		source.Dead, target.Dead, target.Last = source.Dead-1, target.Dead+1, target.Last+1
		m.First, m.Box, m.Number = m.Asked(), to.ID(), target.Last
		m.ID = key(m)
		err = cmp.Or(err, refer(tx, to.Owner, m), Letters.Put(tx, m))
	}
	return cmp.Or(err, Boxes.Put(tx, source), Boxes.Put(tx, target))
}
