package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/runtime"
)

// ownChanges reads and writes what runs change in their workspaces, with the rights of their owners: an apply.Files.
type ownChanges struct {
	cache  *cache
	layers layers
}

// Changes lists what would be written.
func (o ownChanges) Changes(ctx context.Context, run agent.Run, paths []string) (changes []agent.Change, sum string, err error) {
	_, err = o.read(ctx, run, paths, func(chosen []agent.Change) (runtime.Consent, error) {
		changes, sum = chosen, digest(chosen)
		return runtime.Consent{}, nil
	})
	return changes, sum, err
}

// Apply compares the digest while the agent stands still.
func (o ownChanges) Apply(ctx context.Context, run agent.Run, paths []string, sum string) ([]agent.Change, error) {
	same := false
	changes, err := o.read(ctx, run, paths, func(chosen []agent.Change) (runtime.Consent, error) {
		same = digest(chosen) == sum
		return runtime.Consent{Apply: same}, nil
	})
	if err == nil && !same {
		err = api.Failure(api.CodeConflict, "ask again", "the changes are others by now than those that people saw, or were written before cloved ended")
	}
	if err == nil {
		o.layers.log.Info("applied", "run", run.Spec.Name, "changes", len(changes), "by", "people's answer to its agent")
	}
	return changes, err
}

func (o ownChanges) read(ctx context.Context, run agent.Run, paths []string, agree func(chosen []agent.Change) (runtime.Consent, error)) (changes []agent.Change, err error) {
	if err := o.cache.refresh(); err != nil {
		return nil, err
	}
	run, found := o.cache.get(run.Spec.ID)
	if !found {
		return nil, api.Failure(api.CodeNotFound, "", "the run is gone")
	}
	if run.State == agent.StateStarting {
		run.State = agent.StateRunning // its agent calls, and the store does not say yet that it executes
	}
	leave, err := o.layers.readers.enter(ctx, run.Owner.UID)
	if err != nil {
		return nil, err
	}
	defer leave()
	reading := runtime.Reading{Paths: paths, Sums: true, For: ownedBy(ctx, run.Owner).peer.identity()}
	err = o.layers.of(ctx, run, reading, func(ctx context.Context, reading runtime.Reading) (err error) {
		changes, err = o.layers.sandboxes.ApplyChanges(ctx, reading, func(_, chosen []agent.Change) (runtime.Consent, error) { return agree(chosen) })
		return err
	})
	return changes, err
}
