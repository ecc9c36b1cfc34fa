package runtime

import (
	"context"
	"os"
	"time"
)

// maxHold bounds how long an agent stands still for a reader of its layer.
const maxHold = 2 * time.Minute

// Layer calls use with the layer of the agent, which is frozen meanwhile, so that
// everything that is read belongs to one moment. The agent's wall clock goes on. The ctx
// that use gets ends when the agent has to run again: at its end, at its deadline, or after
// maxHold.
func (l *Live) Layer(ctx context.Context, use func(ctx context.Context, layer *os.File) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxHold)
	defer cancel()
	h := &hold{release: cancel}
	var layer *os.File
	var ended func()
	err := l.do(func() error {
		if err := l.s.freezer.hold(h, l.s.seen.cause != causeNone); err != nil {
			return err
		}
		layer, ended = l.s.tree.Layer(), l.s.beginSession()
		return nil
	})
	if err != nil {
		return err
	}
	defer ended()
	defer l.do(func() error { return l.s.freezer.letGo(h) }) // an agent that has ended stands still anyway
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return use(ctx, layer)
}
