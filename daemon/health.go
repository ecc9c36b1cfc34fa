package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// Healthy is what a watchdog wants to know: a caller gets an answer, and the
// reconciler still looks. An answer that is an error is one, and so is a look that
// failed: a disk that is full is not mended by another cloved.
func (d *Daemon) Healthy(ctx context.Context) error {
	if err := d.answers(ctx); err != nil {
		return fmt.Errorf("the API does not answer: %w", err)
	}
	if err := d.reconciler.looks(ctx); err != nil {
		return fmt.Errorf("the reconciler does not look: %w", err)
	}
	return nil
}

// answers calls cloved as anybody would.
func (d *Daemon) answers(ctx context.Context) error {
	socket := d.socket.Load()
	if socket == nil {
		return &agent.Error{Kind: agent.KindBusy, Message: "cloved does not listen yet"}
	}
	conn, err := rpc.Dial(ctx, *socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Request(api.MethodInfo, api.Nothing{}); err != nil {
		return err
	}
	return conn.Answer(ctx, nil, nil, func(json.RawMessage) error { return nil })
}

// looks wakes the reconciler and waits for the end of a look, which may have begun before.
func (r *reconciler) looks(ctx context.Context) error {
	r.mu.Lock()
	ended := r.ended
	r.mu.Unlock()
	r.nudge()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decidedAnew waits for a look that has seen what is stored by now: the next to
// end may have begun before, the one behind it has not.
func (r *reconciler) decidedAnew(ctx context.Context) error {
	for range 2 {
		if err := r.looks(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookEnded reports the end of a look, whatever came of it.
func (r *reconciler) lookEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ended)
	r.ended = make(chan struct{})
}
