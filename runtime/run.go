package runtime

import (
	"context"
	"errors"

	"clove.run/clove/agent"
)

// Run launches the agent, supervises it to its end and returns its record. An
// error means that nothing was recorded: the request was wrong, this host cannot
// hold it, or the start was given up before the run was in the store. Everything
// that fails later is in the record. Ending ctx stops the agent: TERM, its grace,
// then KILL.
func (r *Runtime) Run(ctx context.Context, spec agent.Spec, streams IO) (agent.Record, error) {
	l := &launch{runtime: r, spec: spec, streams: streams, refusals: newRefusals(), denials: newDenials(spec.ID, streams.Denied), trace: newTrace(streams)}
	if spec.Learn {
		l.uses = newUseRecorder()
	}
	signals := listen()
	defer signals.stop()
	var seen outcome
	err := l.bringUp(ctx.Done(), signals)
	switch {
	case err == nil:
		seen = l.supervise(ctx, signals)
	case !l.known.Load():
		return agent.Record{}, l.disown(err)
	default:
		seen = outcome{startError: err}
	}
	record, err := l.settle(seen, signals)
	if err == nil && streams.Ended != nil {
		streams.Ended(record)
	}
	if l.share != nil {
		l.share.callouts.finish(seen) // the record does not wait for them
	}
	return record, err
}

// settle ends the run, as far as that is possible.
func (l *launch) settle(seen outcome, signals *signals) (agent.Record, error) {
	if hung := (hungError{}); errors.As(seen.startError, &hung) {
		return l.abandon(hung.error)
	}
	return l.finish(seen, signals)
}
