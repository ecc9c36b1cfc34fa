package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stagedName is where Apply prepares an entry before it moves it into place,
// in the same directory. One name for all: it finds what a killed Apply left.
const stagedName = ".clove-apply.tmp"

// Apply makes changes, which Diff found in upper, on the host directory
// target, and returns those that were made and those that were refused (their
// Refused says why). A change that is already there is neither. It stops at an
// error that concerns the whole file system; what it returns then is right,
// and each file is either as it was or as the agent left it.
//
// The layer is hostile. Nothing outside target is read or written: no
// symbolic link and no mount point is followed, on either side, not even on
// the way to target, which must therefore be a canonical path. What is written
// belongs to the owner of target, has read, write and execute permissions
// only, and is a regular file, a directory or a symbolic link that stays below
// target. What the host changed since the layer began is never overwritten or
// removed.
//
// On a thread that has somebody else's rights the kernel itself keeps it from
// what that user may not do. The layer is read with access.Layer.
func Apply(ctx context.Context, upper Upper, target string, changes []Change, access Access) ([]Change, error) {
	a, err := openApplier(upper, target, access.Layer)
	if err != nil {
		return nil, fmt.Errorf("cannot apply to %s: %w", printable(target), err)
	}
	defer a.close()
	var done []Change
	// Directories must come before what they hold.
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		made, err := a.apply(ctx, c)
		var why refusal
		switch {
		case errors.As(err, &why):
			c.Refused = string(why)
		case err != nil:
			return done, fmt.Errorf("cannot apply %s: %w", printable(c.Path), err)
		case !made:
			continue
		}
		done = append(done, c)
	}
	return done, a.leave()
}

// refusal is why one change is not made; the others go on.
type refusal string

func (r refusal) Error() string { return string(r) }

// The refusals that are met at more than one place.
const (
	errMounted refusal = "another file system is mounted there"
	errStale   refusal = "the layer is not what it was when it was listed"
)

// applier holds both sides.
type applier struct {
	upper, target beneath
	prefix        string
	since         time.Time
	owner         unix.Stat_t        // of target
	links         map[uint64]written // by inode of the layer
	unlinked      map[uint64]bool    // inodes of the host that lost a name to us
	parent        parent
}

// parent is the directory of target that changes are being made in. changed:
// it has to be flushed before it is left.
type parent struct {
	dir     *os.File
	rel     string
	changed bool
}

func openApplier(upper Upper, target string, layer Rights) (*applier, error) {
	a := &applier{prefix: upper.Prefix, since: upper.Since, links: map[uint64]written{}, unlinked: map[uint64]bool{}}
	var err error
	if a.upper, err = openBeneath(upper.Dir, 0, layer); err != nil {
		return nil, err
	}
	if a.target, err = openBeneath(target, unix.RESOLVE_NO_SYMLINKS, nil); err != nil {
		a.upper.close()
		return nil, err
	}
	lock := func() error { return unix.Flock(int(a.target.root.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	if err := errors.Join(unix.Fstat(int(a.target.root.Fd()), &a.owner), lock()); err != nil {
		a.close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another apply is at work there: %w", err)
		}
		return nil, err
	}
	return a, nil
}

func (a *applier) close() {
	if a.parent.dir != nil {
		a.parent.dir.Close()
	}
	a.upper.close()
	a.target.close()
}

// apply makes one change; made is false when target has it already.
func (a *applier) apply(ctx context.Context, c Change) (made bool, err error) {
	rel, err := a.relative(c)
	if err != nil {
		return false, err
	}
	if err := a.enter(path.Dir(rel)); err != nil {
		return false, refuseForNow(err)
	}
	if err := a.clearStaged(); err != nil {
		return false, refuseForNow(err)
	}
	if c.Kind == Deleted {
		made, err = a.remove(ctx, path.Base(rel))
	} else {
		made, err = a.write(ctx, c, rel)
	}
	a.parent.changed = a.parent.changed || made
	return made, refuseForNow(err)
}

// relative turns the sandbox path of c into one below target. Diff's paths
// pass; anything else is somebody else's.
func (a *applier) relative(c Change) (string, error) {
	rel, ok := strings.CutPrefix(c.Path, sandboxPath(a.prefix, ""))
	switch {
	case !ok:
		return "", refusal("only the workspace is applied")
	case rel == "." || rel != path.Clean(rel) || !filepath.IsLocal(rel) || strings.Contains(rel, "\x00"):
		return "", refusal("not a path below the workspace")
	case slices.Contains(strings.Split(rel, "/"), stagedName):
		return "", refusal("the name is clove's own")
	case c.Refused != "":
		return "", refusal(c.Refused)
	}
	return rel, nil
}

// enter opens the directory rel of target as the parent of what comes next.
func (a *applier) enter(rel string) error {
	if a.parent.dir != nil && a.parent.rel == rel {
		return nil
	}
	if err := a.leave(); err != nil {
		return err
	}
	dir, err := a.target.openDir(rel)
	switch {
	case err == nil:
		a.parent = parent{dir: dir, rel: rel}
		return nil
	case gone(err):
		return refusal("the host has no such directory to hold it")
	}
	return err
}

// leave flushes the parent, so that what was reported as made stays made when
// the machine stops.
func (a *applier) leave() error {
	if a.parent.dir == nil {
		return nil
	}
	defer func() { a.parent = parent{} }()
	var err error
	if a.parent.changed {
		err = a.parent.dir.Sync()
	}
	return errors.Join(err, a.parent.dir.Close())
}

// refuseForNow turns the errors that concern one file into a refusal: the
// host's permissions, attributes and mounts, and what came or went meanwhile.
func refuseForNow(err error) error {
	if errors.Is(err, unix.EXDEV) {
		return errMounted
	}
	for _, one := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EBUSY, unix.EFBIG,
		unix.EMLINK, unix.ENAMETOOLONG, unix.EEXIST, unix.ENOTEMPTY, unix.ENOENT} {
		if errors.Is(err, one) {
			return refusal(err.Error())
		}
	}
	return err
}
