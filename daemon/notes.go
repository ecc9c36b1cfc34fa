package daemon

import (
	"context"
	"log/slog"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/store"
)

// notes are the events of what the Kernel decided, on their way to the store. A decision
// does not wait for them, and the audit log has what is lost here.
type notes struct {
	waiting chan agent.RunEvent
	records records
	meter   *metrics.Meter
	log     *slog.Logger
}

// notesMost bounds the events that wait, and those of one transaction.
const notesMost = 1024

func newNotes(r records, meter *metrics.Meter, log *slog.Logger) *notes {
	return &notes{waiting: make(chan agent.RunEvent, notesMost), records: r, meter: meter, log: log}
}

// add never blocks: the Kernel calls it.
func (n *notes) add(e agent.RunEvent) {
	select {
	case n.waiting <- e:
	default:
		n.meter.Unseen(1)
	}
}

// run stores events until ctx ends, and then what waits.
func (n *notes) run(ctx context.Context) {
	for {
		select {
		case e := <-n.waiting:
			n.store(e)
		case <-ctx.Done():
			select {
			case e := <-n.waiting:
				n.store(e)
			default:
				return
			}
		}
	}
}

// store stores an event and those that wait behind it.
func (n *notes) store(e agent.RunEvent) {
	batch := []agent.RunEvent{e}
	for len(batch) < notesMost {
		select {
		case e = <-n.waiting:
			batch = append(batch, e)
			continue
		default:
		}
		break
	}
	if err := n.records.change(func(s *store.Store) error { return s.Note(batch) }); err != nil {
		n.meter.Unseen(uint64(len(batch)))
		n.log.Error("events are not stored; the audit log has them", "events", len(batch), "error", err)
	}
}
