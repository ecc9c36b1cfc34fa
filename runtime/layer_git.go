package runtime

import (
	"context"
	"errors"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/gitdir"
	"clove.run/clove/internal/gitpull"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

// repository is the repository of a workspace whose .git is a file, as a layer and the host have
// it.
type repository struct {
	rootfs.Git
	moved []rootfs.RefMove // by the agent
	link  gitdir.Link
	now   string // what the host's ref names
	stale string // why nothing can be applied; empty: it can
}

// repository reads both sides; nil: the run was shown none.
func (l *layerReader) repository() (*repository, error) {
	if l.layer.Git() == nil || l.To != "" {
		return nil, nil
	}
	r := &repository{Git: *l.layer.Git()}
	err := l.root.Do(func() error {
		left, err := l.layer.OpenGit(nil)
		if err == nil {
			defer left.Close()
			r.moved = left.Moved()
		}
		return err
	})
	if err != nil || len(r.moved) == 0 {
		return nil, err
	}
	stale := l.user.Do(func() error { return r.look(l.Run.Spec.Files) })
	if stale != nil {
		r.stale = stale.Error()
	}
	return r, nil
}

// look reads the host's side with the rights of the calling thread.
func (r *repository) look(files agent.Files) error {
	link, found := gitdir.Find(files.Workspace, files.GitDir)
	if r.link = link; !found || link.Common != r.Common || link.Own != r.Own {
		return errors.New("the workspace does not belong to this repository any more")
	}
	ref, now, err := link.Current()
	if r.now = now; err == nil && ref != r.Ref {
		err = errors.New("the workspace is on another branch by now")
	}
	return err
}

// changes are the refs that the agent moved, and that the host has elsewhere.
func (r *repository) changes() (changes []rootfs.Change) {
	if r == nil {
		return nil
	}
	for _, move := range r.moved {
		c := rootfs.Change{Kind: rootfs.Changed, Path: r.inside(move.Ref), Type: rootfs.TypeRef, Target: move.Tip, Refused: r.stale}
		if move.Tip == "" {
			c.Refused = "the agent has removed it, or made it lead elsewhere"
		}
		if r.stale != "" || move.Tip != r.now {
			changes = append(changes, c)
		}
	}
	return changes
}

// inside is the path at which the agent finds a ref.
func (r *repository) inside(ref string) string {
	if ref == "HEAD" {
		return path.Join(r.Inside, gitdir.Link{Own: r.Own, Common: r.Common}.Private(), ref)
	}
	return path.Join(r.Inside, ref)
}

// pull takes the agent's commits over, with the user's rights, or for root with those of the
// workspace's owner. agreed are changes of an earlier repository.changes.
func (l *layerReader) pull(ctx context.Context, agreed []rootfs.Change) (done []rootfs.Change, err error) {
	r, err := l.repository()
	if err != nil {
		return nil, err
	}
	current := r.changes()
	for _, change := range agreed {
		switch {
		case change.Refused != "":
		case !slices.Contains(current, change):
			change.Refused = "it has changed since it was listed"
		default:
			if change, err = l.pullOne(ctx, r, change); err != nil {
				return done, err
			}
		}
		done = append(done, change)
	}
	return done, nil
}

func (l *layerReader) pullOne(ctx context.Context, r *repository, change rootfs.Change) (rootfs.Change, error) {
	left, err := l.layer.OpenGit(l.root.Do)
	if err != nil {
		return change, err
	}
	defer left.Close()
	pull := gitpull.Pull{From: left, Common: r.Common, Own: r.Own, Ref: r.Ref, Base: r.Tip, Now: r.now, Tip: change.Target,
		Elsewhere: change.Path != r.inside(r.Ref), As: l.For, Empty: l.empty}
	if pull.As.UID == 0 {
		var common unix.Stat_t
		if err := unix.Stat(r.Common, &common); err != nil {
			return change, err
		}
		pull.As = nsthread.Identity{UID: r.link.Owner, GID: common.Gid}
	}
	var refusal gitpull.Refusal
	if change.Lost, err = pull.Do(ctx); errors.As(err, &refusal) {
		change.Refused, err = string(refusal), nil
	}
	return change, err
}
