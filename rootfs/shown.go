package rootfs

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// shown is the root of another run that a root shows.
type shown struct {
	image  string // of CopyLayer; empty: that run changed nothing
	target string // inside; empty: nothing is shown
}

// Showing is the same plan, which also shows the whole root of an ended run read-only at target.
// Like OnCopyOf it refuses an image that is not root's alone. The other run must have had the
// same Rootfs: below what it changed, the directories of this run's host are seen.
func (p Plan) Showing(image, target string) Plan {
	cfg := p.cfg
	cfg.shown = shown{image, target}
	return planFor(cfg, p.hostInfo)
}

// shownOp mounts the parts of the other root, in their order, without a writable layer. No link
// in them is followed: one could lead to any file of this root, such as a grader's answers.
type shownOp struct {
	shown
	Map idMap
}

func (s shownOp) idMap() idMap { return s.Map }

func (s shownOp) String() string {
	of := s.image
	if of == "" {
		of = "a run that changed nothing"
	}
	return fmt.Sprintf("root of %s at %s, read-only", of, s.target)
}

// Names on the stage: the other run's layer as it is, and with its files owned by this run's ids.
const (
	shownLayer  = "shown"
	shownMapped = "shown-mapped"
)

func (s shownOp) run(b *builder) error {
	from, parts := "layer", slices.Clone(b.tree.table.Uppers)
	if s.image != "" {
		t, err := s.mount(b)
		if err != nil {
			return err
		}
		from, parts = shownLayer, t.Uppers
	}
	top, err := b.makeDir(s.target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	top.Close()
	for i, part := range parts {
		if err := s.show(b, from, i, part); err != nil {
			return fmt.Errorf("%s: %w", part.Prefix, err)
		}
	}
	return nil
}

// mount mounts the image, and a view of it with this run's ids.
func (s shownOp) mount(b *builder) (t table, err error) {
	image, _, err := openSeed(s.image)
	if err != nil {
		return t, err
	}
	defer image.Close() // the loop device keeps it open
	device, err := attachLoop(image, true, b.staged(""))
	if err != nil {
		return t, err
	}
	defer device.Close()
	for _, name := range []string{shownLayer, shownMapped} {
		if err := os.Mkdir(b.staged(name), 0o755); err != nil {
			return t, err
		}
	}
	if err := mountExt4(device, b.staged(shownLayer), true); err != nil {
		return t, err
	}
	if t, err = readTable(b.staged(shownLayer)); err != nil {
		return t, err
	}
	var clone *os.File
	if flags := (cloneFlags{ReadOnly: true, Dir: true}); t.HostID == b.cfg.HostID {
		clone, err = b.clone(b.staged(shownLayer), idMap{}, flags)
	} else {
		clone, err = b.translated(shownLayer, []extent{{t.HostID, b.cfg.HostID, idsPerAgent}}, flags)
	}
	if err != nil {
		return t, err
	}
	defer clone.Close()
	return t, attach(clone, b.staged(shownMapped))
}

// show mounts one part: what the other run changed on what was below it.
func (s shownOp) show(b *builder, from string, index int, part Upper) error {
	at, err := s.place(b, part.Prefix)
	if err != nil {
		return err
	}
	defer at.Close()
	var lowers []string
	if s.image != "" {
		lowers = append(lowers, b.staged(shownMapped, part.Dir))
	}
	sources := []string{part.Lower}
	if part.Prefix == "/" && part.Lower != skeletonDir {
		sources = []string{skeletonDir, part.Lower}
	}
	for i, source := range sources {
		o := overlayOp{Target: part.Prefix, Map: s.Map, Else: asIs, from: from}
		if _, err := os.Lstat(o.copied(b)); err == nil {
			o.Else = byCopy
		}
		lower, err := o.stageLower(b, source, fmt.Sprintf("shown-%d.%d", index, i))
		if err != nil {
			return err
		}
		lowers = append(lowers, lower)
	}
	if len(lowers) == 1 { // overlayfs wants two
		clone, err := b.clone(lowers[0], idMap{}, cloneFlags{ReadOnly: true, Dir: true, NoLinks: true})
		if err != nil {
			return err
		}
		defer clone.Close()
		return attach(clone, fdPath(at))
	}
	options := "lowerdir=" + strings.Join(lowers, ":") + ",redirect_dir=follow,metacopy=off,index=off,xino=off"
	return unix.Mount("clove", fdPath(at), "overlay", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOSYMFOLLOW, options)
}

// place opens where a part is mounted, by no link of the other root: one could lead to any
// place of this root.
func (s shownOp) place(b *builder, prefix string) (*os.File, error) {
	top, err := b.openInside(s.target, unix.O_DIRECTORY)
	if err != nil || prefix == "/" {
		return top, err
	}
	defer top.Close()
	return openat2(int(top.Fd()), strings.TrimPrefix(prefix, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}
