package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// table describes a layer. It is stored in the layer itself, outside of every upper
// directory, where the agent can neither read nor write it.
type table struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	HostID  uint32    `json:"host_id"`
	Since   time.Time `json:"since"`
	Uppers  []Upper   `json:"uppers"` // Dir relative to the layer
	Made    []string  `json:"made"`   // mount points that clove made in the uppers
	Git     *Git      `json:"git,omitempty"`
	// Usage of the layer before the agent wrote to it.
	EmptyBytes  int64 `json:"empty_bytes"`
	EmptyInodes int64 `json:"empty_inodes"`
}

const (
	tableName    = "clove.json"
	tableVersion = 1
)

// Usage is what the agent's files occupy in the writable layer.
type Usage struct {
	Bytes  int64
	Inodes int64
	Files  int64 // inodes that the agent can use in total
	// Full means that there are no free bytes left, NoFiles no free inodes.
	Full, NoFiles bool
}

// A layer counts as full below this free space, because a write that failed with ENOSPC may
// leave that much: ext4 refuses a whole folio if it cannot allocate all its blocks, and a
// folio is as large as the write, up to 2 MiB (Linux 6.16). A small layer counts as full
// when an eighth is free.
const (
	fullBelow    = 2 << 20
	fullFraction = 8
)

// Layer is a handle of the layer's root directory.
func (t *Tree) Layer() *os.File { return t.layer }

// Uppers returns the parts of the writable layer.
func (t *Tree) Uppers() []Upper { return t.table.at(fdPath(t.layer)) }

// aside is what is set aside of a layer. It may be used from any goroutine.
type aside struct{ bytes, files atomic.Int64 }

// space is a file without a name that holds a part of it.
type space struct {
	*os.File
	of    *aside
	bytes int64
}

// SetAside takes space from the agent until the Closer is closed, which must be before the Tree is. If
// there is not enough, it returns nil and what is free, in bytes.
func (t *Tree) SetAside(bytes int64) (held io.Closer, free int64, err error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(t.layer.Fd()), &s); err != nil {
		return nil, 0, fmt.Errorf("cannot read the layer's usage: %w", err)
	}
	if free = int64(s.Bavail) * s.Bsize; bytes > free {
		return nil, free, nil // without trying: the agent would have less for a moment
	}
	fd, err := unix.Open(fdPath(t.layer), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		held := &space{os.NewFile(uintptr(fd), "set aside"), &t.aside, bytes}
		if err = unix.Fallocate(fd, 0, 0, bytes); err == nil {
			t.aside.bytes.Add(bytes)
			t.aside.files.Add(1)
			return held, 0, nil
		}
		held.File.Close()
	}
	if errors.Is(err, unix.ENOSPC) { // the agent was quicker, or has no files left
		return nil, free, nil
	}
	return nil, 0, fmt.Errorf("cannot set space of the layer aside: %w", err)
}

func (s *space) Close() error {
	s.of.bytes.Add(-s.bytes)
	s.of.files.Add(-1)
	return s.File.Close()
}

// Usage returns what was written since Mount, without what the file system itself needs, and without
// what is set aside.
func (t *Tree) Usage() (Usage, error) {
	now, err := t.held()
	now.Bytes, now.Inodes = max(0, now.Bytes-t.before.Bytes-t.aside.bytes.Load()), max(0, now.Inodes-t.before.Inodes-t.aside.files.Load())
	now.Files -= t.before.Inodes
	return now, err
}

// held reads statfs(2). Bavail and not Bfree counts as free, because reserved blocks are
// not available to the agent.
func (t *Tree) held() (Usage, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(t.layer.Fd()), &s); err != nil {
		return Usage{}, fmt.Errorf("cannot read the layer's usage: %w", err)
	}
	free := int64(s.Bavail) * s.Bsize
	return Usage{
		Bytes: int64(s.Blocks-s.Bfree) * s.Bsize, Inodes: int64(s.Files - s.Ffree), Files: int64(s.Files),
		Full: free < min(fullBelow, int64(s.Blocks)*s.Bsize/fullFraction), NoFiles: s.Ffree == 0,
	}, nil
}

// Sync writes the layer and its name to the host's disk. Without it, a power cut leaves an
// image of zeros. From inside to outside: the file system in the image, the image, and the
// directory that names it.
func (t *Tree) Sync() error {
	if err := unix.Syncfs(int(t.layer.Fd())); err != nil {
		return fmt.Errorf("cannot write the layer back: %w", err)
	}
	for _, path := range []string{t.image, filepath.Dir(t.image)} {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("cannot open the layer to write it back: %w", err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("cannot write the layer back: %w", err)
		}
	}
	return nil
}

// Changed reports whether the agent left anything in the layer.
func (t *Tree) Changed() (bool, error) {
	for _, upper := range t.Uppers() {
		changed, err := t.table.changed(upper)
		if changed || err != nil {
			return changed, err
		}
	}
	return false, nil
}

var errChanged = errors.New("changed")

// changed looks for the first name that clove did not make itself.
func (t table) changed(upper Upper) (bool, error) {
	err := filepath.WalkDir(upper.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, ours := t.inside(upper, path, d); ours {
			return nil
		}
		return errChanged
	})
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return false, err
}

// Touched lists what the agent made, changed or removed in the layer, by the names inside. Unlike
// Diff it compares nothing: a file that is again as it was is listed, too. A directory is listed
// if the layer has nothing in it: it is new, or a name in it was made and removed again. It stops
// behind most names; all is false then.
func (t *Tree) Touched(most int) (names []string, all bool, err error) {
	for _, upper := range t.Uppers() {
		err := filepath.WalkDir(upper.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside, ours := t.table.inside(upper, path, d)
			// A directory comes right before what is in it.
			if last := len(names) - 1; last >= 0 && strings.HasPrefix(inside, names[last]+"/") {
				names = names[:last]
			}
			if !ours {
				names = append(names, inside)
			}
			if len(names) > most {
				return errChanged
			}
			return nil
		})
		if errors.Is(err, errChanged) {
			return names[:most], false, nil
		}
		if err != nil {
			return names, false, fmt.Errorf("cannot list the layer: %w", err)
		}
	}
	return names, true, nil
}

// inside is the name that a path of an upper has inside. ours reports whether it is there
// without the agent: the top belongs to the mount; the others are mount points of clove's own
// and the directories that lead to them.
func (t table) inside(upper Upper, path string, d fs.DirEntry) (inside string, ours bool) {
	inside = filepath.Join(upper.Prefix, strings.TrimPrefix(path, upper.Dir))
	return inside, path == upper.Dir || slices.Contains(t.Made, inside) || d.IsDir() && t.leadsToMade(inside)
}

// leadsToMade reports whether overlayfs copied dir up because clove made a mount point below it.
func (t table) leadsToMade(dir string) bool {
	return slices.ContainsFunc(t.Made, func(made string) bool { return within(made, dir) })
}

// at returns the uppers with absolute paths for a layer that is mounted at dir.
func (t table) at(dir string) []Upper {
	uppers := slices.Clone(t.Uppers)
	for i := range uppers {
		uppers[i].Dir = filepath.Join(dir, uppers[i].Dir)
		if uppers[i].Lower == skeletonDir || uppers[i].Lower == gitLayer {
			uppers[i].Lower = filepath.Join(dir, uppers[i].Lower)
		}
		uppers[i].Since = t.Since
	}
	return uppers
}

// Layer is a writable layer opened for reading: a kept image, mounted read-only, or one in use.
type Layer struct {
	dir     string
	mounted bool // by OpenLayer, at dir
	root    *os.File
	table   table
}

// OpenLayer mounts a kept image read-only at dir, an empty directory, in the calling
// thread's private mount namespace. Close must be called on that thread. The caller closes
// image.
func OpenLayer(ctx context.Context, image *os.File, dir string) (*Layer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Shared: any number may read, but no run starts on the layer meanwhile.
	if err := lockImage(image, unix.LOCK_SH); err != nil {
		return nil, err
	}
	device, err := attachLoop(image, true, dir)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	if err := mountExt4(device, dir, true); err != nil {
		return nil, err
	}
	l := &Layer{dir: dir, mounted: true}
	if l.root, err = os.Open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the layer: %w", err), l.Close())
	}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// LiveLayer reads a layer in use by a handle of its root, Tree.Layer, which Close closes.
// Its agent must be frozen meanwhile.
func LiveLayer(root *os.File) (*Layer, error) {
	l := &Layer{dir: fdPath(root), root: root}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Layer) load() (err error) {
	l.table, err = readTable(l.dir)
	return err
}

// readTable rejects other versions: to misread the table could apply the wrong directory to
// the host.
func readTable(layer string) (t table, err error) {
	text, err := os.ReadFile(filepath.Join(layer, tableName))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("cannot read the layer's table: %w", err)
	}
	if t.Version != tableVersion {
		return t, fmt.Errorf("cannot read the layer: version %d is not %d", t.Version, tableVersion)
	}
	return t, nil
}

// Uppers returns the parts of the layer. The paths are valid on the mounting thread; Diff
// and Apply open them without following any link, /proc's included.
func (l *Layer) Uppers() []Upper { return l.table.at(l.dir) }

// Diff lists what the agent changed in these parts of the layer, without the mount points
// that clove made, and without its copy of a repository, which OpenGit reads.
func (l *Layer) Diff(ctx context.Context, uppers []Upper, access Access) ([]Change, error) {
	uppers = slices.DeleteFunc(uppers, func(u Upper) bool { return l.table.Git != nil && u.Prefix == l.table.Git.Inside })
	changes, err := Diff(ctx, uppers, access)
	return slices.DeleteFunc(changes, func(c Change) bool {
		return c.Kind == Added && (slices.Contains(l.table.Made, c.Path) || c.Type == TypeDir && l.table.leadsToMade(c.Path))
	}), err
}

// Close unmounts the layer if OpenLayer mounted it.
func (l *Layer) Close() error {
	if l.root != nil {
		l.root.Close()
	}
	if !l.mounted {
		return nil
	}
	if err := unix.Unmount(l.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("cannot unmount the layer: %w", err)
	}
	return nil
}

// RemoveLayer removes a kept image. An absent one is no error.
func RemoveLayer(image string) error {
	if err := os.Remove(image); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the layer: %w", err)
	}
	return nil
}
