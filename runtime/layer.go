package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

// Reading says which run's layer is read, and with whose rights the host's side is.
type Reading struct {
	Run agent.Run
	// Live is the handle of the layer of a run that executes, from Live.Layer;
	// nil: the run has ended. It stays the caller's.
	Live *os.File
	// For is the user whose rights count on the host's side of the workspace; the
	// zero value is root.
	For nsthread.Identity
	// To is the canonical path of a host directory that takes the place of the workspace;
	// empty: the run's own. It is for what lies in lost/.
	To string
	// Paths choose what is applied, or listed with its contents (rootfs.Chosen); empty: all is
	// applied, or listed without contents, unless Contents asks for those of the workspace.
	Paths    []string
	Contents bool
	// Sums reads the changed files of the workspace for agent.Change.Sum.
	Sums bool
	// ListBytes bounds the list of changes; 0: what fits into memory.
	ListBytes int
}

// Diff lists what the agent changed, workspace and system alike. to and paths are Reading.To and
// Reading.Paths.
func (r *Runtime) Diff(ref, to string, paths []string) ([]rootfs.Change, error) {
	run, err := r.atRest(ref)
	if err != nil {
		return nil, err
	}
	return r.changes(context.Background(), Reading{Run: run, To: to, Paths: paths})
}

// Apply writes the workspace's changes back to the host directory, as far as
// confirm consents. It returns those that were written and those that were refused. to and
// paths are Reading.To and Reading.Paths.
func (r *Runtime) Apply(ref, to string, paths []string, confirm func([]rootfs.Change) Consent) ([]rootfs.Change, error) {
	run, err := r.atRest(ref)
	if err != nil {
		return nil, err
	}
	return r.applyChanges(context.Background(), Reading{Run: run, To: to, Paths: paths}, func(_, chosen []rootfs.Change) (Consent, error) {
		return confirm(chosen), nil
	})
}

// Changes lists what the agent changed. Of the host's side of the workspace it discloses
// only what the user could read.
func (r *Runtime) Changes(ctx context.Context, reading Reading) ([]agent.Change, error) {
	found, err := r.changes(ctx, reading)
	return ChangesOf(found), err
}

func (r *Runtime) changes(ctx context.Context, reading Reading) (changes []rootfs.Change, err error) {
	if err := reading.direct(); err != nil {
		return nil, err
	}
	if reading.Live == nil && reading.Run.Layer == "" {
		return chosenOf(nil, reading.Paths) // nothing was kept: nothing changed
	}
	err = r.read(ctx, reading, func(l *layerReader) error {
		if l.contents = reading.Paths; len(l.contents) == 0 && reading.Contents {
			l.contents = []string{agent.WorkspaceDir}
		}
		changes, err = l.changes(ctx, func(layer *rootfs.Layer) []rootfs.Upper { return layer.Uppers() })
		return err
	})
	if err != nil {
		return nil, err
	}
	return chosenOf(changes, reading.Paths)
}

// ApplyChanges writes the workspace's changes back to the host directory with
// the rights of the user, as far as agree consents. It returns those that were
// written and those that were refused, also beside an error. agree gets all changes of the workspace, and those that
// Reading.Paths choose.
func (r *Runtime) ApplyChanges(ctx context.Context, reading Reading, agree func(all, chosen []agent.Change) (Consent, error)) ([]agent.Change, error) {
	applied, err := r.applyChanges(ctx, reading, func(all, chosen []rootfs.Change) (Consent, error) {
		return agree(ChangesOf(all), ChangesOf(chosen))
	})
	return ChangesOf(applied), err
}

// ChangesOf is a list of changes for callers that do not know package rootfs, and for JSON: their
// names keep each byte.
func ChangesOf(changes []rootfs.Change) []agent.Change {
	out := make([]agent.Change, len(changes))
	for i, c := range changes {
		out[i] = agent.Change{Kind: string(c.Kind), Path: agent.RawString(c.Path), Type: string(c.Type), Size: c.Size, Mode: c.Mode,
			Target: agent.RawString(c.Target), Sum: c.Sum, Was: string(c.Was), From: agent.RawString(c.From), ExecutedBy: c.ExecutedBy, Instructs: c.Instructs, Unknown: c.Unknown,
			Lost: c.Lost, Refused: c.Refused, Contents: (*agent.ChangeContents)(c.Contents)}
	}
	return out
}

// applyChanges lists, asks for consent and writes while the layer stays open, so that what
// is written is what was shown.
func (r *Runtime) applyChanges(ctx context.Context, reading Reading, agree func(all, chosen []rootfs.Change) (Consent, error)) (applied []rootfs.Change, err error) {
	if err := reading.direct(); err != nil {
		return nil, err
	}
	run := reading.Run
	if run.Spec.Files.Workspace == "" {
		err := &agent.Error{Kind: agent.KindInvalid, Step: "apply", Message: run.Spec.Name + " had no workspace of the host's",
			Hint: "run a script, or name a directory with --workspace"}
		if isLost(string(run.Spec.ID)) {
			err.Message, err.Hint = "the workspace of "+run.Spec.Name+" is not known", "name a directory with --to"
		}
		return nil, err
	}
	if reading.Live == nil && run.Layer == "" {
		return nil, nil
	}
	err = r.read(ctx, reading, func(l *layerReader) error {
		changes, err := l.changes(ctx, workspaceOf)
		if err != nil || len(changes) == 0 {
			return err
		}
		chosen, err := ChosenOf(changes, l.Paths)
		if err != nil || len(chosen) == 0 {
			return err
		}
		consent, err := agree(changes, chosen)
		if err != nil || !consent.Apply {
			return err
		}
		applied, err = l.apply(ctx, consent.withhold(chosen))
		return err
	})
	return applied, err
}

// direct makes To the workspace, and refuses what has no layer, or may not have a To.
func (r *Reading) direct() error {
	lost, name := isLost(string(r.Run.Spec.ID)), r.Run.Spec.Name
	switch {
	case lost && r.Run.Layer == "":
		return &agent.Error{Kind: agent.KindNotFound, Message: name + " has a log and no layer", Hint: "root finds the log in its folder below clove's state directory"}
	case r.To == "":
		return nil
	case !lost:
		return &agent.Error{Kind: agent.KindInvalid, Step: "--to", Message: "it is for what lies below " + LostPrefix + ", and " + name + " has a workspace of its own",
			Hint: "omit --to"}
	case !filepath.IsAbs(r.To) || filepath.Clean(r.To) != r.To:
		return &agent.Error{Kind: agent.KindInvalid, Step: "--to", Message: fmt.Sprintf("%.256q is not a clean absolute path", r.To), Hint: "name a directory of the host"}
	}
	r.Run.Spec.Files.Workspace = r.To
	return nil
}

// atRest finds a run that has ended, or waits to run again, or what the store has lost. One
// that is started meanwhile waits for the readers of its layer.
func (r *Runtime) atRest(ref string) (agent.Run, error) {
	if isLost(ref) {
		return r.paths.LostRun(ref)
	}
	run, err := r.Get(ref)
	if err == nil {
		err = run.CheckOwn()
	}
	if err != nil || run.State == agent.StateQueued {
		return run, err
	}
	return r.ended(ref)
}

// workspaceOf is the part of a layer that Apply may write back.
func workspaceOf(layer *rootfs.Layer) []rootfs.Upper {
	return slices.DeleteFunc(layer.Uppers(), func(u rootfs.Upper) bool { return u.Prefix != agent.WorkspaceDir })
}

// ended finds a run and refuses one whose layer is in use.
func (r *Runtime) ended(ref string) (agent.Run, error) {
	run, err := r.Get(ref)
	if err == nil {
		err = checkEnded(run)
	}
	return run, err
}

func checkEnded(run agent.Run) error {
	if run.State == agent.StateEnded {
		return nil
	}
	return &agent.Error{Kind: agent.KindConflict, Message: run.Spec.Name + " is " + string(run.State),
		Hint: "stop it first, or kill and remove it with `clove rm --force`"}
}

// onLayer is the plan on the layer that the run begins with: its own of an earlier start, a
// copy of another run's, or an empty one. It shows another run's root if that was asked for.
func (l *launch) onLayer() rootfs.Plan {
	plan := l.plan
	switch {
	case l.run.Layer != "":
		plan = plan.OnKeptLayer()
	case l.streams.Layer != "":
		plan = plan.OnCopyOf(l.streams.Layer)
	}
	if s := l.streams.Shown; s != nil {
		plan = plan.Showing(s.Image, s.Target)
	}
	return plan
}

// CopyLayer writes a copy of an ended run's layer to a new file, for IO.Layer. kept is false if
// the run left no layer: its agent had changed nothing.
func (r *Runtime) CopyLayer(ref, to string) (kept bool, err error) {
	run, err := r.ended(ref)
	if err != nil || run.Layer == "" {
		return false, err
	}
	image, err := r.openKept(run)
	if err != nil {
		return false, err
	}
	defer image.Close()
	return true, rootfs.CopyLayer(image, to)
}
