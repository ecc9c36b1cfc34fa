package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// stageStep mounts the tmpfs below which everything else is mounted: one
// detached unmount of it takes everything away.
type stageStep struct{}

func (stageStep) String() string { return "stage" }

// The stage allows devices: freeLoop may need a node in it. Its mode lets the
// sandbox's root walk through it, as libcontainer does before it pivots.
func (stageStep) run(b *builder) error {
	dir := b.cfg.stage()
	if err := os.Mkdir(dir, 0o711); err != nil && !os.IsExist(err) {
		return err
	}
	b.undo.Add("directory of the stage", func() error { return os.Remove(dir) })
	if err := unix.Mount("clove", dir, "tmpfs", unix.MS_NOSUID, "mode=0711"); err != nil {
		return err
	}
	b.undo.Add("stage", func() error { return unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
	stage, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	b.stage = stage
	for _, name := range []string{"layer", "low", "root", "sys"} {
		if err := os.Mkdir(b.staged(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// layerStep makes the writable layer's image and mounts it.
type layerStep struct {
	Image    string
	Template template
}

func (s layerStep) String() string { return fmt.Sprintf("layer %s from %s", s.Image, s.Template) }

// run attaches the image while it is one hole, and fills it then: the loop
// driver flushes what is dirty of the file behind it, and that would put the
// template's copy on the disk for a layer that mostly is thrown away.
func (s layerStep) run(b *builder) error {
	blank, err := s.Template.open()
	if err != nil {
		return err
	}
	defer blank.Close()
	image, err := newImage(s.Image, s.Template.Bytes)
	if err != nil {
		return err
	}
	defer image.Close() // the loop device holds it
	b.discard.Add("image", func() error { return os.Remove(s.Image) })
	if err := lockImage(image, unix.LOCK_EX); err != nil {
		return err
	}
	device, err := attachLoop(image, false, b.staged(""))
	if err != nil {
		return err
	}
	defer device.Close()
	if err := holdOff(device); err != nil {
		return err
	}
	if err := fillImage(image, blank); err != nil {
		return err
	}
	if err := forget(device); err != nil {
		return err
	}
	return b.mountLayer(device)
}

func (b *builder) mountLayer(device *os.File) (err error) {
	if err := mountExt4(device, b.staged("layer"), false); err != nil {
		return err
	}
	if b.tree.layer, err = os.Open(b.staged("layer")); err != nil {
		return err
	}
	b.undo.Add("handle of the layer", b.tree.layer.Close)
	return nil
}

// skeletonStep adds what is this run's own to the skeleton, the lowest layer
// of the root, which the template brought.
type skeletonStep struct{ Entries []entry }

func (s skeletonStep) String() string {
	text := "skeleton"
	for _, e := range s.Entries {
		text += "\n  " + e.String()
	}
	return text
}

func (s skeletonStep) run(b *builder) error {
	for _, e := range s.Entries {
		if err := e.write(b.staged("layer", skeletonDir)); err != nil {
			return err
		}
	}
	return nil
}

// overlayStep mounts a writable view of Sources, id-mapped, at Target.
type overlayStep struct {
	Target  string
	Sources []string // host directories or skeletonDir, the topmost first
	Map     idMap
	Index   int // names the upper and work directories
	Else    fallback
	As      *nsthread.Identity // whose rights the source is opened with; nil: root's
}

// fallback is what an overlay does about a source whose file system the kernel
// cannot id-map: overlayfs itself, as in a container, is one.
type fallback string

const (
	fail   fallback = ""
	asIs   fallback = "as it is" // nobody's files, read-only by their permissions
	byCopy fallback = "a copy"   // in the layer, within its size
)

func (s overlayStep) idMap() idMap { return s.Map }

func (s overlayStep) String() string {
	text := fmt.Sprintf("overlay %s on %s, %s, upper %d", s.Target, strings.Join(s.Sources, " on "), s.Map, s.Index)
	if s.Else != fail {
		text += ", or " + string(s.Else)
	}
	if s.As != nil {
		text += fmt.Sprintf(", as user %d", s.As.UID)
	}
	return text
}

func (s overlayStep) run(b *builder) error {
	var lowers []string
	for i, source := range s.Sources {
		lower, err := s.stageLower(b, source, fmt.Sprintf("%d.%d", s.Index, i))
		if err != nil {
			return err
		}
		lowers = append(lowers, lower)
	}
	upper, work, err := b.upper(s.Index, s.Target, s.Sources[len(s.Sources)-1], lowers[0])
	if err != nil {
		return err
	}
	if err := os.Mkdir(work, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	target := b.staged("root")
	if s.Target != "/" {
		at, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
		if err != nil {
			return err
		}
		defer at.Close()
		target = fdPath(at)
	}
	// Each of these may be on by the kernel's configuration. redirect_dir and
	// metacopy let a file's place and bytes be named by attributes, which a kept
	// layer must not do to clove diff; index and xino buy nothing here.
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=off,metacopy=off,index=off,xino=off",
		strings.Join(lowers, ":"), upper, work)
	if err := unix.Mount("clove", target, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	if s.Target == "/" {
		return b.openRoot()
	}
	return nil
}

// stageLower attaches an id-mapped, read-only clone of source to the stage, for
// the overlay to lie on: overlayfs of Linux 6.1 takes no detached mount.
func (s overlayStep) stageLower(b *builder, source, name string) (string, error) {
	if source == skeletonDir {
		source = b.staged("layer", skeletonDir)
	}
	opened := source
	if s.As != nil {
		from, err := openAs(source, *s.As, true)
		if err != nil {
			return "", err
		}
		defer from.Close()
		opened = fdPath(from)
	}
	clone, err := b.clone(opened, s.Map, cloneFlags{ReadOnly: true, Dir: true})
	if errors.Is(err, ErrUnmappable) && s.Else != fail {
		clone, err = s.without(b, source, opened)
	}
	if err != nil {
		return "", err
	}
	defer clone.Close()
	lower := b.staged("low", name)
	if err := os.Mkdir(lower, 0o755); err != nil {
		return "", err
	}
	return lower, attach(clone, lower)
}

// without clones source by way of the fallback.
func (s overlayStep) without(b *builder, source, opened string) (*os.File, error) {
	b.tree.Unmapped = append(b.tree.Unmapped, source)
	if s.Else == asIs {
		return b.clone(opened, idMap{}, cloneFlags{ReadOnly: true, Dir: true})
	}
	from, err := openSource(opened, true)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	copied := b.staged("layer", fmt.Sprintf("copy-%x", s.Target))
	if _, err := os.Lstat(copied); err == nil {
		return b.clone(copied, s.Map, cloneFlags{ReadOnly: true, Dir: true}) // a kept layer's
	}
	if err := copyTree(from, copied, s.As); err != nil {
		return nil, fmt.Errorf("%w of %s, and %w", ErrUnmappable, source, err)
	}
	return b.clone(copied, s.Map, cloneFlags{ReadOnly: true, Dir: true})
}

// tableStep writes down inside the layer what its uppers are, for OpenLayer.
type tableStep struct{}

func (tableStep) String() string { return "table" }

func (tableStep) run(b *builder) error {
	if !b.cfg.kept {
		b.tree.table.Since = time.Now()
		empty, err := b.tree.held()
		if err != nil {
			return err
		}
		b.tree.table.EmptyBytes, b.tree.table.EmptyInodes = empty.Bytes, empty.Inodes
	}
	text, err := json.Marshal(b.tree.table)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(fdPath(b.tree.layer), tableName), text, 0o600)
}
