package daemon

import (
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
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

// passLong is pass for an answer that may be as long as a line of the supervisor's.
func passLong(method string) handler {
	return func(c *call, params json.RawMessage) (any, error) {
		var p api.RunParams
		if err := decodeParams(params, &p); err != nil {
			return nil, err
		}
		return later{room: rpc.MaxLine, make: func() (any, error) {
			var result json.RawMessage
			err := c.ask(method, p, &result)
			return result, err
		}}, nil
	}
}

// ask puts a question to the supervisor of the call's run.
func (c *call) ask(method string, params, result any) error {
	if err := reachable(c.run); err != nil {
		return err
	}
	return supervisor.Call(c, c.options.Paths.Run, c.run.Spec.ID, method, params, result)
}

// reachable refuses what only a supervisor can do where there is none: a run
// that does not execute, or one in the foreground, which its own clove holds.
func reachable(run agent.Run) error {
	if run.State != agent.StateRunning {
		return api.Failure(api.CodeConflict, "clove ps -a shows its state", "%s is %s", run.Spec.Name, run.State)
	}
	return detached(run)
}

func detached(run agent.Run) error {
	if run.Spec.Detached {
		return nil
	}
	return api.Failure(api.CodeConflict, "use the terminal that it runs in, or start it with run -d",
		"%s runs in the foreground, out of cloved's reach", run.Spec.Name)
}
