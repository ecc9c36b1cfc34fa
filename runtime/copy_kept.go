package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// CopyKept writes what a run at rest has in its layer at path, as CopyOut does for a live one: with
// the rights of the agent, and nothing but files, folders and links. What the agent left unchanged
// is the host's and not in a layer, so of a folder it is what the agent made or changed.
func (r *Runtime) CopyKept(ctx context.Context, ref, inside string, to io.Writer) error {
	run, err := r.atRest(ref)
	if err != nil {
		return err
	}
	inside = path.Clean("/" + inside)
	if run.Layer == "" || isLost(ref) {
		return notKept(run, inside)
	}
	return r.read(ctx, Reading{Run: run}, func(l *layerReader) error {
		var place *os.File
		err := l.root.Do(func() (err error) { place, err = l.layer.Place(inside); return err })
		switch {
		case isAny(err, unix.ENOENT, unix.ENOTDIR):
			return notKept(run, inside)
		case errors.Is(err, unix.ELOOP):
			return &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: "cannot copy " + inside + ": the agent left a link in this path", Hint: "name the file itself"}
		case err != nil:
			return copyFailed(inside, err)
		}
		defer place.Close()
		c := copier{hostID: l.layer.HostID(), uid: run.Spec.User.UID, gid: run.Spec.User.GID, kept: true}
		// Not on the thread that has mounted the layer: this one is the agent until it ends.
		return c.do(func() error { return c.archive(place, inside, to) })
	})
}

// notKept is the error for a path that a layer does not have.
func notKept(run agent.Run, inside string) error {
	err := &agent.Error{Kind: agent.KindNotFound, Step: "copy", Message: fmt.Sprintf("%s left nothing at %s", run.Spec.Name, inside),
		Hint: "after its end a run has only what it made or changed: clove diff " + run.Spec.Name + " lists it"}
	if rest, below := strings.CutPrefix(inside, agent.WorkspaceDir+"/"); below && run.Spec.Files.Workspace != "" {
		err.Hint += "; otherwise the file is the host's, " + path.Join(run.Spec.Files.Workspace, rest)
	}
	return err
}
