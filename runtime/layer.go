package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

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
	// applied, or listed without contents.
	Paths []string
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
	return r.applyChanges(context.Background(), Reading{Run: run, To: to, Paths: paths}, func(changes []rootfs.Change) (Consent, error) {
		chosen, err := ChosenOf(changes, paths)
		if err != nil || len(chosen) == 0 {
			return Consent{}, err
		}
		return confirm(chosen), nil
	})
}

// Changes lists what the agent changed. Of the host's side of the workspace it discloses
// only what the user could read.
func (r *Runtime) Changes(ctx context.Context, reading Reading) ([]agent.Change, error) {
	found, err := r.changes(ctx, reading)
	return changesOf(found), err
}

func (r *Runtime) changes(ctx context.Context, reading Reading) (changes []rootfs.Change, err error) {
	if err := reading.direct(); err != nil {
		return nil, err
	}
	if reading.Live == nil && reading.Run.Layer == "" {
		return chosenOf(nil, reading.Paths) // nothing was kept: nothing changed
	}
	err = r.read(ctx, reading, func(l *layerReader) error {
		l.contents = reading.Paths
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
// written and those that were refused, also beside an error.
func (r *Runtime) ApplyChanges(ctx context.Context, reading Reading, agree func([]agent.Change) (Consent, error)) ([]agent.Change, error) {
	applied, err := r.applyChanges(ctx, reading, func(found []rootfs.Change) (Consent, error) { return agree(changesOf(found)) })
	return changesOf(applied), err
}

// changesOf is a list of changes for callers that do not know package rootfs.
func changesOf(changes []rootfs.Change) []agent.Change {
	out := make([]agent.Change, len(changes))
	for i, c := range changes {
		out[i] = agent.Change{Kind: string(c.Kind), Path: agent.RawString(c.Path), Type: string(c.Type), Size: c.Size, Mode: c.Mode,
			Target: agent.RawString(c.Target), Was: string(c.Was), From: agent.RawString(c.From), ExecutedBy: c.ExecutedBy, Instructs: c.Instructs, Unknown: c.Unknown,
			Lost: c.Lost, Refused: c.Refused, Contents: (*agent.ChangeContents)(c.Contents)}
	}
	return out
}

// applyChanges lists, asks for consent and writes while the layer stays open, so that what
// is written is what was shown.
func (r *Runtime) applyChanges(ctx context.Context, reading Reading, agree func([]rootfs.Change) (Consent, error)) (applied []rootfs.Change, err error) {
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
		consent, err := agree(changes)
		if err != nil || !consent.Apply {
			return err
		}
		if changes, err = ChosenOf(changes, l.Paths); err != nil {
			return err
		}
		applied, err = l.apply(ctx, consent.withhold(changes))
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

// layerReader holds a layer open between two threads: one reads the layer,
// which takes root's rights, the other is the user on the host.
type layerReader struct {
	Reading
	layer    *rootfs.Layer
	root     *nsthread.Thread
	user     *nsthread.Thread
	contents []string // paths whose contents are listed
	empty    string   // a directory that any thread may cover in a mount namespace of its own
}

// read opens the layer for use.
func (r *Runtime) read(ctx context.Context, reading Reading, use func(*layerReader) error) (err error) {
	l := &layerReader{Reading: reading, empty: r.paths.Run}
	// A mount namespace of its own, so that the host never sees the layer's mount, and a
	// killed clove leaves none.
	if l.root, err = nsthread.Start(unix.CLONE_NEWNS); err != nil {
		return agent.Failed("layer", err)
	}
	defer l.root.Close()
	if l.user, err = nsthread.StartAs(reading.For); err != nil {
		return agent.Failed("layer", err)
	}
	defer l.user.Close()
	if err := l.root.Do(func() error { return l.open(ctx, r) }); err != nil {
		return agent.Failed("layer", err)
	}
	err = use(l)
	if cerr := l.root.Do(l.layer.Close); err == nil {
		err = cerr
	}
	return agent.Failed("layer", err)
}

// open mounts a kept layer where only the reading thread sees it.
func (l *layerReader) open(ctx context.Context, r *Runtime) error {
	if l.Live != nil {
		// A duplicate, because Close of the layer closes it and the original stays the
		// caller's.
		own, err := unix.FcntlInt(l.Live.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			l.layer, err = rootfs.LiveLayer(os.NewFile(uintptr(own), "layer"))
		}
		return err
	}
	image, err := r.openKept(l.Run)
	if err != nil {
		return err
	}
	defer image.Close()
	// In the thread's own namespace any directory may be covered.
	l.layer, err = rootfs.OpenLayer(ctx, image, r.paths.Run)
	if errors.Is(err, rootfs.ErrLayerBusy) {
		err = &agent.Error{Kind: agent.KindConflict, Message: l.Run.Spec.Name + " was started meanwhile", Hint: "ask again", Err: err}
	}
	return err
}

// openKept opens the image of a run at rest. It may have been started again
// since its caller looked, with a new image of the same name: what is open then
// is the old one, or it is refused.
func (r *Runtime) openKept(run agent.Run) (*os.File, error) {
	image, err := os.Open(run.Layer)
	if errors.Is(err, fs.ErrNotExist) {
		err = &agent.Error{Kind: agent.KindNotFound, Message: "the layer of " + run.Spec.Name + " is not there any more",
			Hint: "it was removed, perhaps after the backup that was restored; `clove restart --fresh` begins with a new one"}
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.atRest(string(run.Spec.ID)); err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

// access makes root read the layer, and the user the host's workspace and folders.
func (l *layerReader) access() rootfs.Access {
	a := rootfs.Access{Layer: l.root.Do, ListBytes: l.ListBytes, Contents: l.contents}
	// Without an entry the host's side is read on the same thread, as root.
	if l.For.UID != 0 {
		a.Host = map[string]rootfs.Rights{agent.WorkspaceDir: l.user.Do}
		for _, b := range l.Run.Spec.Files.Binds {
			a.Host[b.Target] = l.user.Do
		}
	}
	return a
}

func (l *layerReader) changes(ctx context.Context, of func(*rootfs.Layer) []rootfs.Upper) (changes []rootfs.Change, err error) {
	err = l.root.Do(func() error {
		changes, err = l.layer.Diff(ctx, l.directed(of(l.layer)), l.access())
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		if !strings.HasPrefix(c.Path, agent.WorkspaceDir+"/") {
			changes[i].ExecutedBy, changes[i].Instructs, changes[i].Unknown = "", "", "" // it never comes to the host
		}
	}
	repository, err := l.repository()
	return append(changes, repository.changes()...), err
}

// directed are the parts of the layer over the directories that they are compared with.
func (l *layerReader) directed(uppers []rootfs.Upper) []rootfs.Upper {
	for i := range uppers {
		if l.To != "" && uppers[i].Prefix == agent.WorkspaceDir {
			uppers[i].Lower = l.To
		}
	}
	return uppers
}

// apply writes on the user's thread, so that the kernel refuses what the user could not
// write; only its reads of the layer switch to root's. Commits come behind the files.
func (l *layerReader) apply(ctx context.Context, changes []rootfs.Change) (applied []rootfs.Change, err error) {
	isFile := func(c rootfs.Change) bool { return c.Type != rootfs.TypeRef }
	refs := slices.DeleteFunc(slices.Clone(changes), isFile)
	workspace := workspaceOf(l.layer)
	if len(workspace) == 0 {
		return nil, nil
	}
	err = l.user.Do(func() error {
		files := slices.DeleteFunc(slices.Clone(changes), func(c rootfs.Change) bool { return !isFile(c) })
		applied, err = rootfs.Apply(ctx, workspace[0], l.Run.Spec.Files.Workspace, files, l.access())
		return err
	})
	if err != nil || len(refs) == 0 {
		return applied, err
	}
	pulled, err := l.pull(ctx, refs)
	return append(applied, pulled...), err
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
