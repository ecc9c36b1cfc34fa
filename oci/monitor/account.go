package monitor

import (
	"context"
	"time"
)

// accounting is how far a keeper is with the record. What may hang, a disk or
// cloved, does so in a goroutine beside keep's: the deadline is also of those who
// outlived the first process, and a hanging disk must not be their way out.
type accounting struct {
	unwritten  account
	complained bool             // that it cannot be written
	again      <-chan time.Time // the next try; nil: there is none to wait for
	tried      chan attempt     // has room for the one that goes on
	reporting  bool
	reported   chan error    // has room for the one
	patience   time.Duration // with cloved
}

// attempt is one try to write a record, and gives the one that stands.
type attempt struct {
	stands account
	err    error
}

// accounted tells whether there is nothing left to say of the container.
func (k *keeper) accounted() bool { return k.order.Phase == phaseEnded && !k.reporting }

// conclude accounts for the container. One whose process never executed has
// nothing to account for.
func (k *keeper) conclude(e end) {
	if k.order.Record == "" || k.order.Phase == phaseCreated {
		k.close()
		return
	}
	k.unwritten = account{k.record(e), k.directory}
	k.write()
}

// write tries once, and wrote hears of it. What a killed keeper wrote of this end
// stays: it saw more.
func (k *keeper) write() {
	k.again = nil
	go func(path string, a account) {
		if there, written := writtenBefore(path, a); written {
			k.tried <- attempt{stands: there}
			return
		}
		k.tried <- attempt{a, writeRecord(path, a)}
	}(k.order.Record, k.unwritten)
}

// writePause is between two tries to write a record.
const writePause = time.Second

// wrote tries again as often as it takes: a full disk may be emptied. Whoever wants
// to remove the container is told why it stays.
func (k *keeper) wrote(a attempt) {
	if !k.owns() {
		k.order.Phase = phaseEnded
		return
	}
	if a.err != nil {
		if !k.complained {
			k.note(a.err) // once: the log is in memory
		}
		k.complained = true
		k.answerLeaving(a.err)
		k.again = time.After(writePause)
		return
	}
	k.close()
	// Behind the last word on disk: a keeper that is killed here has lost nothing of the file.
	k.reporting = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), k.patience)
		defer cancel()
		k.reported <- k.report(ctx, a.stands.Record) // k.order does not change any more
	}()
}

// close says on disk that there is nothing left to do for another keeper.
func (k *keeper) close() {
	k.order.Phase = phaseEnded
	if k.owns() {
		k.note(k.order.save(k.directory))
	}
}
