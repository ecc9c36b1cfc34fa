package runtime

import (
	"context"
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/gitdir"
	"clove.run/clove/internal/gitpull"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

// commits is where an agent has moved the branch of its workspace, in a repository outside of it.
type commits struct {
	git  rootfs.Git
	link gitdir.Link
	tip  string // where the agent has moved it
	now  string // where the host has it
}

// commits lists the branch as one change; nil: the host has what the agent has, or the run was
// shown no repository.
func (l *layerReader) commits() (found commits, change *rootfs.Change, err error) {
	if l.layer.Git() == nil || l.To != "" {
		return found, nil, nil
	}
	found.git = *l.layer.Git()
	var refused string
	err = l.root.Do(func() error {
		left, err := l.layer.OpenGit(nil)
		if err != nil {
			return err
		}
		defer left.Close()
		found.tip, refused = left.Moved()
		return nil
	})
	if err != nil || found.tip == "" && refused == "" {
		return found, nil, err
	}
	stale := l.user.Do(func() (err error) {
		found.link, _ = gitdir.Find(l.Run.Spec.Files.Workspace)
		if found.link.Common != found.git.Common || found.link.Own != found.git.Own {
			return errors.New("the workspace does not belong to this repository any more")
		}
		var ref string
		if ref, found.now, err = found.link.Current(); err == nil && ref != found.git.Ref {
			err = errors.New("the workspace is on another branch by now")
		}
		return err
	})
	switch {
	case stale != nil:
		refused = stale.Error()
	case found.tip == found.now && refused == "":
		return found, nil, nil
	}
	at := found.git.Ref
	if at == "HEAD" {
		at = path.Join(found.link.Private(), at)
	}
	return found, &rootfs.Change{Kind: rootfs.Changed, Path: path.Join(found.git.Inside, at), Type: rootfs.TypeRef, Target: found.tip, Refused: refused}, nil
}

// pull takes the agent's commits over, with the user's rights, or for root with those of the
// workspace's owner.
func (l *layerReader) pull(ctx context.Context, change rootfs.Change) (rootfs.Change, error) {
	found, _, err := l.commits()
	if err != nil || change.Refused != "" {
		return change, err
	}
	if found.tip != change.Target {
		change.Refused = "the agent has moved it since it was listed"
		return change, nil
	}
	left, err := l.layer.OpenGit(l.root.Do)
	if err != nil {
		return change, err
	}
	defer left.Close()
	as := l.For
	if as.UID == 0 {
		var owner unix.Stat_t
		if err := unix.Stat(found.git.Common, &owner); err != nil {
			return change, err
		}
		as = nsthread.Identity{UID: found.link.Owner, GID: owner.Gid}
	}
	pull := gitpull.Pull{From: left, Common: found.git.Common, Own: found.git.Own, Ref: found.git.Ref, Base: found.git.Tip,
		Now: found.now, Tip: found.tip, As: as, Empty: l.empty}
	lost, err := pull.Do(ctx)
	var refusal gitpull.Refusal
	if errors.As(err, &refusal) {
		change.Refused, err = string(refusal), nil
	}
	change.Lost = lost
	return change, err
}
