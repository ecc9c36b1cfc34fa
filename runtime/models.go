package runtime

import (
	"context"
	"os"

	"clove.run/clove/agent"
)

// Models serves models to agents over HTTP. Either cloved does, or, where none runs, the
// process that supervises a run in the foreground.
type Models interface {
	// Serve serves the run's agent on a listener, which it takes over, until ctx ends. used
	// returns what its calls have used; it is called when the agent has ended.
	Serve(ctx context.Context, run agent.Run, listener *os.File) (used func() []agent.ModelUse, err error)
}

// openModels makes the listener of models before the agent could take its port.
func (l *launch) openModels() (err error) {
	if !l.spec.Kernel.HasModels() {
		return nil
	}
	if l.streams.Models == nil || l.network.namespace == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "models", Message: "nothing here serves models",
			Hint: "start the run with `clove run`, and without --network host"}
	}
	listener, err := l.network.namespace.ListenInside(agent.ModelPort)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.undo.Add("models", func() error { cancel(); return nil })
	l.models, err = l.streams.Models.Serve(ctx, l.run, listener)
	return err
}
