package linear

import (
	"context"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
)

// Cloved asks a cloved over its socket.
type Cloved struct {
	*client.Client
	Command []string // of an exec
}

// Create starts a run and returns what the answer shows of it.
func (c Cloved) Create(ctx context.Context, spec agent.Spec) (agent.Run, error) {
	result, err := c.Client.Start(ctx, api.StartParams{Spec: spec})
	return result.Run, err
}

// Get looks at a run.
func (c Cloved) Get(ctx context.Context, name string) (agent.Run, error) {
	result, err := c.Client.Get(ctx, name)
	return result.Run, err
}

// Kill ends a run and does not wait for that.
func (c Cloved) Kill(ctx context.Context, name string) error {
	return c.Client.Signal(ctx, name, syscall.SIGKILL)
}

// Stop ends a run and waits for that.
func (c Cloved) Stop(ctx context.Context, name string) error {
	return c.Client.Stop(ctx, name, nil)
}

// Exec runs a command in the sandbox; how it ends is of no interest.
func (c Cloved) Exec(ctx context.Context, name string) error {
	session, err := c.Client.Exec(ctx, api.ExecParams{RunParams: api.RunParams{Run: name}, Exec: agent.Exec{Command: c.Command}})
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Answer(ctx, nil, func(api.SessionOutput) error { return nil })
}

// Rename gives a run that does not execute another name.
func (c Cloved) Rename(ctx context.Context, from, to string) error {
	_, err := c.Client.Rename(ctx, from, to)
	return err
}

// Remove forgets a run that has ended or waits.
func (c Cloved) Remove(ctx context.Context, name string) error {
	return c.Client.Remove(ctx, name, false)
}
