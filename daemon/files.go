package daemon

import (
	"context"
	"log/slog"
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/runtime"
)

// files carries files between agents, through spools: what a parent gives a child, and what a child
// has changed. cloved names the spools and parses none of them.
type files struct {
	spools runtime.Spools
	cache  *cache
	layers layers
	log    *slog.Logger
}

// maxSpawnFiles bounds the files of one spawn.
const maxSpawnFiles = 64

// pack copies files of a parent, with the parent's rights, into spools of the child: they are put
// into its sandbox before its agent executes. most bounds them together, in bytes. An error leaves
// nothing. The child needs not be in the store yet; if it will not be, drop takes them back.
func (f files) pack(ctx context.Context, parent agent.Run, child agent.ID, all []api.SpawnFile, most int64) (err error) {
	if len(all) == 0 {
		return nil
	}
	if len(all) > maxSpawnFiles {
		return api.Failure(api.CodeParams, "name a folder with all of them", "files: a child may be given %d files and folders", maxSpawnFiles)
	}
	leave, err := f.layers.readers.enter(ctx, parent.Owner.UID)
	if err != nil {
		return err
	}
	defer leave()
	defer func() {
		if err != nil {
			f.drop(child)
		}
	}()
	for n, file := range all {
		spool, err := f.spools.New(child, n)
		if err != nil {
			return err
		}
		if err := f.layers.supervisors.ask(ctx, parent, supervisor.MethodPack, supervisor.PackParams{
			Path: agent.RawString(file.From), As: agent.RawString(file.To), Spool: spool, Most: most}, nil); err != nil {
			return err
		}
		info, err := os.Stat(spool)
		if err != nil {
			return err
		}
		most -= info.Size()
	}
	// gofail: var filesPacked string
	// if err := failpoint(filesPacked, ""); err != nil { return err }

	return nil
}

// drop takes back what pack has made, unless the child has it already.
func (f files) drop(child agent.ID) {
	if err := f.spools.Drop(child); err != nil {
		f.log.Error("the files for a child are left", "id", child, "error", err)
	}
}

// recover removes the spools that a cloved before this one left: of calls, and of children that have
// started or never will. waits says of a child that it is still to be queued.
func (f files) recover(waits func(agent.ID) (bool, error)) {
	err := f.spools.Sweep(func(id agent.ID) bool {
		// In this order: one that is queued meanwhile is in the store before it waits no more.
		if waits, err := waits(id); waits || err != nil || f.cache.refresh() != nil {
			return true
		}
		run, found := f.cache.get(id)
		return found && run.Started.IsZero()
	})
	if err != nil {
		f.log.Error("spools are left", "error", err)
	}
}

// collect copies what a run has changed below a path of another's, with the rights of both, by way of a
// spool.
func (f files) collect(ctx context.Context, to agent.Run, from agent.ID, p api.CollectParams) (result api.CollectResult, err error) {
	if err := f.cache.refresh(); err != nil {
		return result, err
	}
	child, found := f.cache.get(from)
	if !found {
		return result, api.Failure(api.CodeNotFound, "collect before a run is removed", "the run was removed with its files")
	}
	if err := reachable(to); err != nil {
		return result, err
	}
	leave, err := f.layers.readers.enter(ctx, to.Owner.UID)
	if err != nil {
		return result, err
	}
	defer leave()
	// One of a call, not of a run: nothing puts it into a sandbox.
	spool, err := f.spools.New(agent.NewID(), 0)
	if err != nil {
		return result, err
	}
	copied, err := f.changes(ctx, child, p.Paths, spool, to.Spec.Limits.DiskBytes)
	if err != nil {
		return result, err
	}
	defer os.Remove(spool)
	return collected(copied), f.layers.supervisors.ask(ctx, to, supervisor.MethodUnpack, supervisor.PackParams{Path: agent.RawString(p.Path), Spool: spool}, nil)
}

// fetch copies a part of a folder that another run of the namespace keeps, with the rights of both, by way
// of a spool.
func (f files) fetch(ctx context.Context, to agent.Run, p api.FetchParams) error {
	if err := f.cache.refresh(); err != nil {
		return err
	}
	from, found := f.cache.find(to.Owner.UID, p.Keeper)
	folder := ""
	if found && from.Spec.Kernel.Namespace == to.Spec.Kernel.Namespace && from.State == agent.StateRunning {
		folder = from.Spec.Files.KeptAt(p.From)
	}
	if folder == "" {
		return api.Failure(api.CodeNotFound, "name a live run of the namespace, and a folder that it keeps", "no run %.128q keeps %.256q", p.Keeper, p.From)
	}
	for _, run := range []agent.Run{from, to} {
		if err := reachable(run); err != nil {
			return err
		}
	}
	leave, err := f.layers.readers.enter(ctx, to.Owner.UID)
	if err != nil {
		return err
	}
	defer leave()
	spool, err := f.spools.New(agent.NewID(), 0)
	if err != nil {
		return err
	}
	if err := f.layers.supervisors.ask(ctx, from, supervisor.MethodPack, supervisor.PackParams{Path: agent.RawString(p.From), Beneath: agent.RawString(folder),
		As: agent.RawString(p.From), Spool: spool, Most: to.Spec.Limits.DiskBytes}, nil); err != nil {
		return err
	}
	defer os.Remove(spool)
	return f.layers.supervisors.ask(ctx, to, supervisor.MethodUnpack, supervisor.PackParams{Path: agent.RawString(p.Path), Spool: spool}, nil)
}

// changes writes what a run has changed to a spool with at most so many bytes. With an error there is none.
func (f files) changes(ctx context.Context, run agent.Run, paths []string, spool string, most int64) (copied runtime.Copied, err error) {
	reading := runtime.Reading{Paths: paths}
	reading.For.UID, reading.For.GID = run.Owner.UID, run.Owner.GID
	err = f.layers.of(ctx, run, reading, func(ctx context.Context, reading runtime.Reading) error {
		to, err := supervisor.NewSpool(ctx, spool, most)
		if err != nil {
			return err
		}
		copied, err = f.layers.sandboxes.CopyChanges(ctx, reading, to)
		return to.Finish(err)
	})
	return copied, err
}

// An answer names so many changes that were left out, those with longer paths aside: it has to fit
// into a line.
const (
	leftInAnswer = 16
	maxLeftPath  = 512
)

// collected is the answer to a call that has copied.
func collected(copied runtime.Copied) api.CollectResult {
	result := api.CollectResult{Files: copied.Files, Bytes: copied.Bytes, Missing: copied.Missing, Left: []api.CollectLeft{}}
	for _, left := range copied.Left {
		if len(left.Path) <= maxLeftPath && len(result.Left) < leftInAnswer {
			result.Left = append(result.Left, api.CollectLeft{Path: agent.RawString(left.Path), Why: left.Why})
		}
	}
	return result
}
