package linear

import (
	"context"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// Cloved asks a cloved over its socket.
type Cloved struct {
	*client.Client
	Command []string // of an exec
}

// Create starts a run and returns what the answer shows of it.
func (c Cloved) Create(ctx context.Context, spec agent.Spec) (agent.Run, error) {
	result, err := client.Do(ctx, c.Client, methods.RunStart, api.StartParams{Spec: spec})
	return result.Run, err
}

// Get looks at a run.
func (c Cloved) Get(ctx context.Context, name string) (agent.Run, error) {
	result, err := client.Do(ctx, c.Client, methods.RunGet, api.RunParams{Run: name})
	return result.Run, err
}

// Kill ends a run and does not wait for that.
func (c Cloved) Kill(ctx context.Context, name string) error {
	return client.Perform(ctx, c.Client, methods.RunSignal, api.SignalParams{RunParams: api.RunParams{Run: name}, Signal: int(syscall.SIGKILL)})
}

// Stop ends a run and waits for that.
func (c Cloved) Stop(ctx context.Context, name string) error {
	return client.Perform(ctx, c.Client, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: name}})
}

// Exec runs a command in the sandbox; how it ends is of no interest.
func (c Cloved) Exec(ctx context.Context, name string) error {
	session, err := client.Open(ctx, c.Client, methods.RunExec, api.ExecParams{RunParams: api.RunParams{Run: name}, Exec: agent.Exec{Command: c.Command}})
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Answer(ctx, nil, func(api.SessionOutput) error { return nil })
}

// Rename gives a run that does not execute another name.
func (c Cloved) Rename(ctx context.Context, from, to string) error {
	_, err := client.Do(ctx, c.Client, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: from}, Name: to})
	return err
}

// Remove forgets a run that has ended or waits.
func (c Cloved) Remove(ctx context.Context, name string) error {
	return client.Perform(ctx, c.Client, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: name}})
}
