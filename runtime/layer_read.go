package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

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
	if l.Sums {
		a.Sums = []string{agent.WorkspaceDir}
	}
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
