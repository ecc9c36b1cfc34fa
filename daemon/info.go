package daemon

import (
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// handlers answer the methods of the table that are no sessions.
var handlers = map[string]handler{
	api.MethodInfo:   handle(info),
	api.MethodReload: handle(func(c *call, _ api.Nothing) (any, error) { return api.Nothing{}, c.Reload() }),
	api.MethodDrain: handle(func(c *call, p api.DrainParams) (any, error) {
		if err := c.reconciler.drain(p.On); err != nil {
			return nil, err
		}
		c.log.Info("drain", "on", p.On, "peer", c.peer.String())
		return api.Nothing{}, nil
	}),
	api.MethodDebug: handle(lookInside),
	api.MethodGuard: handle(startGuard),

	api.MethodContainer: handle(account),

	api.MethodRunStart:  handle(start),
	api.MethodRunList:   handle(list),
	api.MethodRunGet:    handle(get),
	api.MethodRunWait:   handle(wait),
	api.MethodRunRemove: handle(remove),
	api.MethodRunRename: handle(rename),
	api.MethodRunPrune:  handle(prune),

	api.MethodRunStop:    handle(stop),
	api.MethodRunSignal:  handle(signal),
	api.MethodRunRestart: handle(restart),
	api.MethodRunPause:   handle(pause),
	api.MethodRunResume:  handle(resume),
	api.MethodRunUpdate:  handle(update),

	api.MethodRunStats:     pass[api.StatsResult](api.MethodRunStats),
	api.MethodRunProcesses: passLong(api.MethodRunProcesses),

	api.MethodRunDiff:  handle(diff),
	api.MethodRunApply: handle(apply),

	api.MethodRunLogs:     handle(readLogs),
	api.MethodEventFollow: handle(followEvents),
}

// info is what this cloved is, and how many runs the caller has.
func info(c *call, _ api.Nothing) (any, error) {
	if err := c.cache.refresh(); err != nil {
		return nil, err
	}
	counts := map[agent.State]int{}
	for _, run := range c.cache.list(c.peer.sees) {
		counts[run.State]++
	}
	return api.InfoResult{Version: c.options.Version, API: api.Version, PID: os.Getpid(), Started: c.started,
		Root: c.options.Paths.State, RunDir: c.options.Paths.Run, Draining: c.reconciler.drained(), Runs: counts}, nil
}
