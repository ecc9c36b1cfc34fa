package monitor

import (
	"context"
	"time"
)

// accounting is how far a monitor is with the record. Writing to disk and reporting
// to cloved may hang, so each has a goroutine of its own: the deadline also applies to
// processes that outlive the first one, and a hanging disk must not delay it.
type accounting struct {
	// The record that still has to be written.
	unwritten ownedRecord
	logged    bool             // a failure to write it was logged
	again     <-chan time.Time // the next attempt; nil: none is waited for
	tried     chan attempt     // has room for the attempt in progress
	reporting bool
	reported  chan error    // has room for the one report
	patience  time.Duration // for cloved's answer
}

// attempt is one try to write a record; stands is what is on disk afterwards.
type attempt struct {
	stands ownedRecord
	err    error
}

// accounted reports whether the record is written and reported.
func (m *monitor) accounted() bool { return m.order.Phase == phaseEnded && !m.reporting }

// conclude begins to write the container's record. A container whose process never executed
// has no record.
func (m *monitor) conclude(e end) {
	if m.order.Record == "" || m.order.Phase == phaseCreated {
		m.close()
		return
	}
	m.unwritten = ownedRecord{m.record(e), m.directory}
	m.write()
}

// write starts one attempt to write the record; wrote gets the result. A record of this end
// that an earlier, killed monitor has written stays, because that monitor saw more.
func (m *monitor) write() {
	m.again = nil
	go func(path string, a ownedRecord) {
		if there, written := writtenBefore(path, a); written {
			m.tried <- attempt{stands: there}
			return
		}
		m.tried <- attempt{a, writeRecord(path, a)}
	}(m.order.Record, m.unwritten)
}

// writePause is the time between two attempts to write a record.
const writePause = time.Second

// wrote tries again until it works: space may be freed on a full disk. A caller that
// wants to remove the container gets the error.
func (m *monitor) wrote(a attempt) {
	// The container is gone, with its directory. Its record belongs to no container any more.
	if !m.owns() {
		m.order.Phase = phaseEnded
		return
	}
	if a.err != nil {
		if !m.logged {
			m.note(a.err) // once: the log is on a tmpfs
		}
		m.logged = true
		m.answerLeaving(a.err)
		m.again = time.After(writePause)
		return
	}
	m.close()
	// After close: a monitor that is killed here loses the report, never the file.
	m.reporting = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), m.patience)
		defer cancel()
		m.reported <- m.report(ctx, a.stands.Record) // m.order does not change any more
	}()
}

// close notes on disk that no later monitor has anything to do.
func (m *monitor) close() {
	m.order.Phase = phaseEnded
	if m.owns() {
		m.note(m.order.save(m.directory))
	}
}
