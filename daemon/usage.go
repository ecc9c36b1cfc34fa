package daemon

import (
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

// pass hands a call about a live run to its supervisor.
func pass[R any](method string) handler {
	return func(c *call, params json.RawMessage) (any, error) {
		var p api.RunParams
		if err := decodeParams(params, &p); err != nil {
			return nil, err
		}
		var result R
		return &result, c.ask(method, p, &result)
	}
}

// ask puts a question to the supervisor of the call's run.
func (c *call) ask(method string, params, result any) error {
	if c.run.State != agent.StateRunning {
		return c.notLive()
	}
	return supervisor.Call(c, c.options.Paths.Run, c.run.Spec.ID, method, params, result)
}
