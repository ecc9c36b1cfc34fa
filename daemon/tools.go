package daemon

import (
	"context"
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/runtime"
	"clove.run/clove/tools/control"
)

// openDoors makes what serves the MCP servers of runs. A call that comes from one is the run's agent's.
func (d *Daemon) openDoors() {
	d.shared.doors = control.New(control.Options{Programs: runtime.Programs, Log: d.log, Calls: func(ctx context.Context, run agent.ID, calls *channel.Conn) {
		err := calls.Serve(ctx, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			result, err := dispatcher{log: d.log}.contained(caller{}, method, func() (any, error) { return d.shared.agentCall(ctx, run, method, params) })
			text, _ := result.(json.RawMessage) // none with an error
			return text, err
		})
		d.log.Debug("the calls of a door are not served any more", "run", run, "reason", err)
	}})
}
