package rootfs

import (
	"context"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// remove deletes name in the parent. An absent name is no change.
func (a *applier) remove(ctx context.Context, name string) (made bool, err error) {
	st, ok, err := statAt(a.parent.dir, name)
	if err != nil || !ok {
		return false, err
	}
	if err := a.untouched(ctx, a.parent.dir, name, st); err != nil {
		return false, err
	}
	return true, removeTree(ctx, a.parent.dir, name)
}

// untouched refuses if the host changed name, or a file below it, since the layer began.
// The caller replaces or removes what passes.
//
// The change time (ctime) decides: unlike the modification time it cannot be set back, and
// it changes when a file is renamed into place. It also changes when a hard link of the
// file is removed. If Apply removed that link, the modification time must do. Times of
// directories are ignored, because they change with each entry.
func (a *applier) untouched(ctx context.Context, dir *os.File, name string, st unix.Stat_t) error {
	return eachBelow(ctx, dir, name, st, func(_ *os.File, name string, st unix.Stat_t, _ bool) error {
		if fileType(st.Mode) == TypeDir {
			return nil
		}
		touched := st.Ctim
		if a.unlinked[st.Ino] {
			touched = st.Mtim
		}
		if !time.Unix(touched.Unix()).Before(a.since) {
			return refusal("the host changed " + printable(name) + " since the run began")
		}
		if st.Nlink > 1 {
			a.unlinked[st.Ino] = true
		}
		return nil
	})
}

// clearStaged removes what a killed Apply left in the parent.
func (a *applier) clearStaged() error {
	if _, ok, err := statAt(a.parent.dir, stagedName); err != nil || !ok {
		return err
	}
	// Clean-up must not be cancelled with the caller's context.
	return removeTree(context.Background(), a.parent.dir, stagedName)
}

// removeTree deletes name in dir and all below it. It follows no link.
func removeTree(ctx context.Context, dir *os.File, name string) error {
	st, ok, err := statAt(dir, name)
	if err != nil || !ok {
		return err
	}
	return eachBelow(ctx, dir, name, st, func(dir *os.File, name string, st unix.Stat_t, last bool) error {
		switch {
		case !last:
			return nil
		case fileType(st.Mode) == TypeDir:
			return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
		}
		return unix.Unlinkat(int(dir.Fd()), name, 0)
	})
}

// visit is called twice for an entry, name in dir: with last false before everything below
// it, and with last true after.
type visit func(dir *os.File, name string, st unix.Stat_t, last bool) error

// eachBelow visits name in dir and all below it. At a mount point it fails with EXDEV
// before it visits anything in it.
func eachBelow(ctx context.Context, dir *os.File, name string, st unix.Stat_t, see visit) error {
	if err := see(dir, name, st, false); err != nil {
		return err
	}
	if fileType(st.Mode) == TypeDir {
		if err := insideOf(ctx, dir, name, see); err != nil {
			return err
		}
	}
	return see(dir, name, st, true)
}

// insideOf visits the entries of the directory name in parent.
func insideOf(ctx context.Context, parent *os.File, name string, see visit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Refuses links and mount points, whatever the entry was when it was looked at.
	dir, err := beneath{root: parent}.openDir(path.Base(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		st, ok, err := statAt(dir, name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := eachBelow(ctx, dir, name, st, see); err != nil {
			return err
		}
	}
	return nil
}
