package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// End ends a run without cloved, as a host that shuts down must, and returns
// when its record is stored. It is not stored as a stop that was asked for, so a policy
// starts the run again after the reboot. A run without a supervisor is no error.
func End(ctx context.Context, runDir string, id agent.ID, grace time.Duration) error {
	conn, err := Connect(ctx, runDir, id)
	if agent.KindOf(err) == agent.KindConflict && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	// Two requests: a stop returns when the end has begun, the other one when the record is
	// stored.
	ns := int64(grace)
	for _, ask := range []struct {
		method string
		params any
	}{{methods.RunStop.Name, api.StopParams{GraceNS: &ns}}, {MethodWait, api.Nothing{}}} {
		if err := conn.Request(ask.method, ask.params); err != nil {
			return nil // it went at that moment
		}
		err := conn.Answer(ctx, nil, nil, func(text json.RawMessage) error { return api.ParseError(text) })
		if errors.Is(err, rpc.ErrGone) {
			return nil
		}
		if err != nil && agent.KindOf(err) != agent.KindConflict {
			return err
		}
	}
	return nil
}
