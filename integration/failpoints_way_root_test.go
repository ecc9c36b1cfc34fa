//go:build root

package integration

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// way is a run's life as requests. Earlier requests may have failed to make the run that a
// later one names.
var way = []wayStep{
	{"create", func(ctx context.Context, c *client.Client, f *faulty) error {
		_, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: f.spec("waits", "true"), DelayNS: int64(time.Hour)})
		return err
	}, "waits", isQueued},
	{"rename", func(ctx context.Context, c *client.Client, _ *faulty) error {
		_, err := client.Do(ctx, c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "waits"}, Name: "renamed"})
		return err
	}, "renamed", isQueued},
	{"start", func(ctx context.Context, c *client.Client, f *faulty) error {
		_, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: f.spec("live", "sleep 1000")})
		return err
	}, "live", nil}, // it may die together with its supervisor
	{"update", func(ctx context.Context, c *client.Client, _ *faulty) error {
		_, err := client.Do(ctx, c, methods.RunUpdate, api.UpdateParams{RunParams: api.RunParams{Run: "live"}, Update: agent.Update{WallClock: new(updatedClock)}})
		return err
	}, "live", func(run agent.Run, _ bool) bool { return run.Spec.Limits.WallClock == updatedClock }},
	{"pause", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunPause, api.RunParams{Run: "live"})
	}, "live",
		func(run agent.Run, _ bool) bool { return run.Queue.Paused }},
	{"resume", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunResume, api.RunParams{Run: "live"})
	}, "live",
		func(run agent.Run, _ bool) bool { return !run.Queue.Paused }},
	{"run", func(ctx context.Context, c *client.Client, f *faulty) error {
		if _, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: f.spec("short", "echo x >file; exit 7")}); err != nil {
			return err
		}
		_, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "short"})
		return err
	}, "short", endedWith(7)},
	{"restart", func(ctx context.Context, c *client.Client, _ *faulty) error {
		if _, err := client.Do(ctx, c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "short"}}}); err != nil {
			return err
		}
		_, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "short"})
		return err
	}, "short", endedWith(7)},
	{"stop", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: "live"}, GraceNS: new(int64)})
	}, "live",
		func(run agent.Run, _ bool) bool { return run.State == agent.StateEnded && run.Record != nil }},
	{"bury", killSupervisorOf, "victim", func(run agent.Run, _ bool) bool {
		return run.State == agent.StateEnded && run.Record.Status == agent.StatusKilled && run.Record.Error != nil
	}},
	{"remove what waits", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "renamed"}})
	}, "renamed", isGone},
	{"remove what ended", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "short"}})
	}, "short", isGone},
}

const updatedClock = 50 * time.Minute

// spec returns a complete spec.
func (f *faulty) spec(name, script string) agent.Spec {
	spec := f.pattern
	spec.ID, spec.Name, spec.Command = agent.NewID(), name, []string{"sh", "-c", script}
	return spec
}

func isQueued(run agent.Run, found bool) bool { return found && run.State == agent.StateQueued }
func isGone(_ agent.Run, found bool) bool     { return !found }

func endedWith(code int) func(agent.Run, bool) bool {
	return func(run agent.Run, found bool) bool {
		return found && run.State == agent.StateEnded && run.Record.Status == agent.StatusExited && run.Record.ExitCode == code
	}
}

// killSupervisorOf starts an agent, kills its supervisor, and waits for the record.
func killSupervisorOf(ctx context.Context, c *client.Client, f *faulty) error {
	started, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: f.spec("victim", "sleep 1000")})
	if err != nil {
		return err
	}
	if err := unix.Kill(started.Run.Lease.SupervisorPID, unix.SIGKILL); err != nil {
		return err
	}
	_, err = client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "victim"})
	return err
}
