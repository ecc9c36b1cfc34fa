package runtime

import (
	"context"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// Diff lists what the agent changed, workspace and system alike.
func (r *Runtime) Diff(ref string) ([]rootfs.Change, error) {
	run, err := r.atRest(ref)
	if err != nil || run.Layer == "" {
		return nil, err // nothing was kept: nothing changed
	}
	var changes []rootfs.Change
	err = r.withLayer(run, func(layer *rootfs.Layer) (err error) {
		changes, err = layer.Diff(context.Background())
		return err
	})
	return changes, err
}

// Apply writes the workspace's changes back to the host directory, if confirm
// agrees to them. It returns those that were written.
func (r *Runtime) Apply(ref string, confirm func([]rootfs.Change) bool) ([]rootfs.Change, error) {
	run, err := r.atRest(ref)
	if err != nil {
		return nil, err
	}
	if run.Spec.Files.Workspace == "" {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "apply", Message: run.Spec.Name + " had no workspace of the host's",
			Hint: "run a script, or name a directory with --workspace"}
	}
	if run.Layer == "" {
		return nil, nil
	}
	var applied []rootfs.Change
	err = r.withLayer(run, func(layer *rootfs.Layer) error {
		uppers := layer.Uppers()
		i := slices.IndexFunc(uppers, func(u rootfs.Upper) bool { return u.Prefix == agent.WorkspaceDir })
		if i < 0 {
			return nil
		}
		workspace := uppers[i]
		changes, err := rootfs.Diff(context.Background(), []rootfs.Upper{workspace})
		if err != nil || len(changes) == 0 || !confirm(changes) {
			return err
		}
		applied, err = rootfs.Apply(context.Background(), workspace, run.Spec.Files.Workspace, changes)
		return err
	})
	return applied, err
}

// atRest finds a run that has ended, or waits to run again. One that is started
// meanwhile waits for who reads its layer.
func (r *Runtime) atRest(ref string) (agent.Run, error) {
	run, err := r.Get(ref)
	if err == nil && run.State == agent.StateQueued {
		return run, nil
	}
	return r.ended(ref)
}

// ended finds a run and refuses one whose layer is in use.
func (r *Runtime) ended(ref string) (agent.Run, error) {
	run, err := r.Get(ref)
	if err == nil && run.State != agent.StateEnded {
		err = &agent.Error{Kind: agent.KindConflict, Message: run.Spec.Name + " is " + string(run.State),
			Hint: "stop it first, or kill and remove it with `clove rm --force`"}
	}
	return run, err
}

// withLayer mounts a kept layer where only this call sees it.
func (r *Runtime) withLayer(run agent.Run, use func(*rootfs.Layer) error) error {
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		return agent.Failed("layer", err)
	}
	defer thread.Close()
	return agent.Failed("layer", thread.Do(func() error {
		// In the thread's own namespace any directory may be covered.
		layer, err := rootfs.OpenLayer(context.Background(), run.Layer, r.paths.Run)
		if err != nil {
			return err
		}
		defer layer.Close()
		return use(layer)
	}))
}

// Remove forgets an ended run: its record and its name, then its layer and its
// log. In this order a store that fails loses nothing, and who dies in between
// leaves files that gc knows for nobody's.
func (r *Runtime) Remove(ref string) error {
	run, err := r.ended(ref)
	if err != nil {
		return err
	}
	if err := r.withStore(func(s *store.Store) error { return s.Remove(run.Spec.ID) }); err != nil {
		return err
	}
	// gofail: var removeForgotten string
	// if err := failpoint(removeForgotten, ""); err != nil { return err }

	if run.Layer != "" {
		if err := os.Remove(run.Layer); err != nil && !os.IsNotExist(err) {
			return agent.Failed("layer", err)
		}
	}
	return agent.Failed("log", os.RemoveAll(r.paths.Log(run.Spec.ID)))
}
