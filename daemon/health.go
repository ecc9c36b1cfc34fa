package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Healthy checks for a watchdog that a caller gets an answer, and that the reconciler still
// looks. An answer counts even if it is an error, and a look even if it failed: a restart
// of cloved mends neither a full disk nor a damaged store.
func (d *Daemon) Healthy(ctx context.Context) error {
	if err := d.answers(ctx); err != nil {
		return fmt.Errorf("the API does not answer: %w", err)
	}
	if err := d.reconciler.looks(ctx); err != nil {
		return fmt.Errorf("the reconciler does not respond: %w", err)
	}
	return nil
}

// answers calls cloved over its socket, as every caller does. So it also notices what is
// wrong before the handlers: no free descriptor, or an accept loop that hangs.
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
	if err := conn.Request(methods.Info.Name, api.Nothing{}); err != nil {
		return err
	}
	return conn.Answer(ctx, nil, nil, func(json.RawMessage) error { return nil })
}
