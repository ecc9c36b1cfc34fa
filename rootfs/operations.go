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

// stageOp mounts the tmpfs below which everything else is mounted, so that one detached
// unmount removes everything.
type stageOp struct{}

func (stageOp) String() string { return "stage" }

// The stage allows devices, because freeLoop may need a node in it. Its mode lets the
// sandbox's root pass through, as libcontainer does before pivot_root(2).
func (stageOp) run(b *builder) error {
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

// layerOp makes the writable layer's image and mounts it.
type layerOp struct {
	Image    string
	Template template
}

func (s layerOp) String() string { return fmt.Sprintf("layer %s from %s", s.Image, s.Template) }

// run attaches the image while it is one hole and fills it afterwards. On attach the loop
// driver flushes the file's dirty pages, which would write the template's copy to the disk
// for a layer that is mostly discarded.
func (s layerOp) run(b *builder) error {
	blank, err := s.Template.open()
	if err != nil {
		return err
	}
	defer blank.Close()
	image, err := newImage(s.Image, s.Template.Bytes)
	if err != nil {
		return err
	}
	defer image.Close() // the loop device keeps it open
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

// mountLayer mounts the layer and keeps a handle of its root, by which its usage can be
// read after libcontainer has changed the root.
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

// skeletonOp adds this run's own entries to the skeleton, the lowest layer of the root,
// which is part of the template.
type skeletonOp struct{ Entries []entry }

func (s skeletonOp) String() string {
	text := "skeleton"
	for _, e := range s.Entries {
		text += "\n  " + e.String()
	}
	return text
}

func (s skeletonOp) run(b *builder) error {
	for _, e := range s.Entries {
		if err := e.write(b.staged("layer", skeletonDir)); err != nil {
			return err
		}
	}
	return nil
}

// overlayOp mounts a writable, id-mapped view of Sources at Target.
type overlayOp struct {
	Target  string
	Sources []string // host directories or skeletonDir, the topmost first
	Map     idMap
	Index   int // names the upper and work directories
	Else    fallback
	As      *nsthread.Identity // whose rights open the source; nil: root's
	from    string             // the layer on the stage that has the skeleton and copies
}

// fallback is what an overlay does with a source whose file system cannot be id-mapped.
// overlayfs itself is one, as in a container.
type fallback string

const (
	fail   fallback = ""
	asIs   fallback = "as it is" // files of the user nobody, read-only by their permissions
	byCopy fallback = "a copy"   // in the layer, within its size
)

func (s overlayOp) idMap() idMap { return s.Map }

func (s overlayOp) String() string {
	text := fmt.Sprintf("overlay %s on %s, %s, upper %d", s.Target, strings.Join(s.Sources, " on "), s.Map, s.Index)
	if s.Else != fail {
		text += ", or " + string(s.Else)
	}
	if s.As != nil {
		text += fmt.Sprintf(", as user %d", s.As.UID)
	}
	return text
}

// run stages the sources, makes the upper directory, and mounts the overlay. The root's own
// overlay comes first; later targets are resolved inside of it.
func (s overlayOp) run(b *builder) error {
	var lowers []string
	for i, source := range s.Sources {
		lower, err := s.stageLower(b, source, fmt.Sprintf("%d.%d", s.Index, i))
		if err != nil {
			return err
		}
		lowers = append(lowers, lower)
	}
	// After the sources, whose topmost has the owner and mode that the overlay shall show.
	upper, work, err := b.upper(s.Index, s.Target, s.Sources[len(s.Sources)-1], lowers[0])
	if err != nil {
		return err
	}
	if err := os.Mkdir(work, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if b.cfg.kept && s.Target == workspaceDir {
		if err := settleMoves(upper, lowers[0]); err != nil {
			return err
		}
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
	// The kernel's configuration may turn on or off each of these. Without redirect_dir a
	// directory of the lower layer cannot be renamed (EXDEV); redirect.go says what follows
	// from it. metacopy describes a file's content by attributes, which clove diff does not
	// read; index and xino have no use here.
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=on,metacopy=off,index=off,xino=off",
		strings.Join(lowers, ":"), upper, work)
	if err := unix.Mount("clove", target, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	if s.Target == "/" {
		return b.openRoot()
	}
	return nil
}

// stageLower attaches an id-mapped, read-only clone of source to the stage, as the
// overlay's lower layer. overlayfs of Linux 6.1 does not accept a detached mount.
func (s overlayOp) stageLower(b *builder, source, name string) (string, error) {
	if source == skeletonDir || source == gitLayer {
		source = b.staged(s.from, source)
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

// without clones source by the fallback.
func (s overlayOp) without(b *builder, source, opened string) (*os.File, error) {
	b.tree.Unmapped = append(b.tree.Unmapped, source)
	if s.Else == asIs {
		return b.clone(opened, idMap{}, cloneFlags{ReadOnly: true, Dir: true})
	}
	from, err := openSource(opened, true)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	copied := s.copied(b)
	if _, err := os.Lstat(copied); err == nil {
		return b.clone(copied, s.Map, cloneFlags{ReadOnly: true, Dir: true}) // the copy of a kept layer
	}
	if err := copyTree(from, copied, s.As); err != nil {
		return nil, fmt.Errorf("%w of %s, and %w", ErrUnmappable, source, err)
	}
	return b.clone(copied, s.Map, cloneFlags{ReadOnly: true, Dir: true})
}

// copied is where the layer has a copy of a source, if it has one.
func (s overlayOp) copied(b *builder) string {
	return b.staged(s.from, fmt.Sprintf("copy-%x", s.Target))
}

// tableOp writes the table of uppers into the layer, for OpenLayer.
type tableOp struct{}

func (tableOp) String() string { return "table" }

// run writes the table last, when all uppers are known. A kept layer keeps the time and the
// usage of its first start, and so does a copy of one.
func (tableOp) run(b *builder) error {
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
