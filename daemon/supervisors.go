package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

// supervisors are reached below cloved's run directory. There is no list of them: each is
// found by the socket in its run's directory, also after a restart of cloved.
type supervisors struct{ runDir string }

// call asks the supervisor of a run once.
func (s supervisors) call(ctx context.Context, run agent.ID, method string, params, result any) error {
	return supervisor.Call(ctx, s.runDir, run, method, params, result)
}

// ask is call for a run that has to be reachable.
func (s supervisors) ask(ctx context.Context, run agent.Run, method string, params, result any) error {
	if err := reachable(run); err != nil {
		return err
	}
	return s.call(ctx, run.Spec.ID, method, params, result)
}

// reachable refuses what only a supervisor can do where there is none: a run
// that does not execute, or one in the foreground, which its own clove holds.
func reachable(run agent.Run) error {
	if run.State != agent.StateRunning {
		return api.Failure(api.CodeConflict, "clove ps -a shows its state", "%s is %s", run.Spec.Name, run.State)
	}
	return detached(run)
}

// detached refuses a foreground run of root's, which has no socket: its supervisor is the
// clove in the user's terminal.
func detached(run agent.Run) error {
	if run.Spec.Detached {
		return nil
	}
	return api.Failure(api.CodeConflict, "use the terminal that it runs in, or start it with run -d",
		"%s runs in the foreground, out of cloved's reach", run.Spec.Name)
}
