package rootfs

import (
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

// stagedName is the name under which Apply prepares an entry, in the same directory, before
// it moves it into place. It is always the same, so that Apply finds and removes what a
// killed Apply left.
const stagedName = ".clove-apply.tmp"

// Apply makes changes, which Diff found in upper, in the host directory target. It returns
// the changes that were made and those that were refused (Refused says why). A change that
// the host has already is neither. Apply stops at an error that concerns the whole file
// system. The returned list is valid then too, and each file is either as it was or as the
// agent left it, with its times.
//
// The layer is hostile. Apply reads and writes nothing outside target: it follows no
// symbolic link and no mount point, on either side, not even on the way to target, which
// must therefore be a canonical path. Each entry that it writes belongs to the owner of target,
// has read, write and execute permissions only, and is a regular file, a directory, or a
// symbolic link that stays below target. It never overwrites or removes what the host
// changed since the layer began.
//
// On a thread with a user's rights, the kernel itself refuses what that user may not do.
// The layer is read with access.Layer.
func Apply(ctx context.Context, upper Upper, target string, changes []Change, access Access) ([]Change, error) {
	a, err := openApplier(upper, target, access.Layer)
	if err != nil {
		return nil, fmt.Errorf("cannot apply to %s: %w", printable(target), err)
	}
	defer a.close()
	g := a.plan(changes)
	for i := range g.steps {
		if err := a.do(ctx, g, i); err != nil {
			return g.list(), err
		}
	}
	a.loseLinks(g)
	return g.list(), a.leave()
}

// refusal says why one change is not made; Apply continues with the others.
type refusal string

func (r refusal) Error() string { return string(r) }

// Refusals with more than one place of origin.
const (
	errMounted refusal = "another file system is mounted there"
	errStale   refusal = "the layer has changed since it was listed"
)

// applier has both sides open while Apply runs.
type applier struct {
	upper, target beneath
	prefix        string
	marks         marks
	since         time.Time
	begun         time.Time           // of this Apply
	owner         unix.Stat_t         // of target
	links         map[uint64]*written // by inode of the layer, see written
	unlinked      map[uint64]bool     // inodes of the host from which Apply has removed a name
	lost          []string            // of the change that is being made
	parent        parent
}

// parent is the directory of target in which changes are made. If changed is set, it must
// be flushed before the next directory.
type parent struct {
	dir     *os.File
	rel     string
	times   []unix.Timespec // that it gets when it was changed; nil: the present ones
	changed bool
}

// openApplier opens both sides once. Later operations use the open directories, so a rename
// of a parent cannot redirect them.
func openApplier(upper Upper, target string, layer Rights) (*applier, error) {
	a := &applier{prefix: upper.Prefix, marks: overlayMark, since: upper.Since, begun: time.Now(), links: map[uint64]*written{}, unlinked: map[uint64]bool{}}
	var err error
	if a.upper, err = openBeneath(upper.Dir, 0, layer); err != nil {
		return nil, err
	}
	if a.target, err = openBeneath(target, unix.RESOLVE_NO_SYMLINKS, nil); err != nil {
		a.upper.close()
		return nil, err
	}
	// The lock keeps two Applies from removing each other's staged entry.
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

// apply makes one change; made is false if target has it already.
func (a *applier) apply(ctx context.Context, g *agenda, s *step) (made bool, err error) {
	if err := a.enter(path.Dir(s.rel)); err != nil {
		return false, refuseForNow(err)
	}
	// Before each change, not once: the leftover may be in any directory that an earlier
	// Apply worked in.
	if err := a.clearStaged(); err != nil {
		return false, refuseForNow(err)
	}
	switch s.change.Kind {
	case Deleted:
		made, err = a.remove(ctx, path.Base(s.rel))
	case Renamed:
		made, err = a.rename(ctx, s.change, g.now(s.from), s.rel)
	default:
		made, err = a.write(ctx, s.change, s.rel)
	}
	a.parent.changed = a.parent.changed || made
	return made, refuseForNow(err)
}

// relative turns a sandbox path into a path below target. It accepts the paths that Diff
// returns and rejects all others.
func (a *applier) relative(at string) (string, error) {
	rel, ok := strings.CutPrefix(at, sandboxPath(a.prefix, ""))
	switch {
	case !ok:
		return "", refusal("only the workspace is applied")
	case rel == "." || rel != path.Clean(rel) || !filepath.IsLocal(rel) || strings.Contains(rel, "\x00"):
		return "", refusal("not a path below the workspace")
	// clearStaged would remove it.
	case slices.Contains(strings.Split(rel, "/"), stagedName):
		return "", refusal("the name is clove's own")
	}
	return rel, nil
}

// enter opens the directory rel of target for the next changes.
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
		a.parent.times, err = a.folderTimes(dir, rel)
		return err
	case gone(err):
		return refusal("the host has no such directory to hold it")
	}
	return err
}

// leave flushes the directory, so that changes that were reported as made survive a power cut.
func (a *applier) leave() error {
	if a.parent.dir == nil {
		return nil
	}
	defer func() { a.parent = parent{} }()
	var err error
	if a.parent.changed {
		err = errors.Join(setFolderTimes(a.parent.dir, a.parent.times), a.parent.dir.Sync())
	}
	return errors.Join(err, a.parent.dir.Close())
}

// refuseForNow turns errors that concern one file into a refusal: the host's permissions,
// attributes and mounts, and files that appeared or vanished meanwhile.
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
