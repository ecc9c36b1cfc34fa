package rootfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OnKeptLayer is the same plan, but that the agent goes on with the layer that
// an earlier run of this ID left.
func (p Plan) OnKeptLayer() Plan {
	cfg := p.cfg
	cfg.kept = true
	return planFor(cfg, p.facts)
}

// keptStep mounts the layer of an earlier run. Its skeleton and a copied
// workspace are what they were at the first start; what the host's directories
// below the overlays hold by now shows through.
type keptStep struct{ Image string }

func (s keptStep) String() string { return "kept layer " + s.Image }

func (s keptStep) run(b *builder) error {
	image, err := os.OpenFile(s.Image, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("cannot open the layer: %w", err)
	}
	defer image.Close() // the loop device holds it
	if err := lockImage(image, unix.LOCK_EX); err != nil {
		return err
	}
	if err := mend(image); err != nil {
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
	if err := b.mountLayer(device); err != nil {
		return err
	}
	if b.tree.table, err = readTable(b.staged("layer")); err != nil {
		return err
	}
	return b.remap()
}

// remap lets what the agent wrote be its own again. The files have the host ids
// of the range that was leased when the layer was made, and today's may be
// another; the mount translates, and nothing is rewritten. The ids below are
// the host's own, which overlayfs uses in its work directories.
func (b *builder) remap() error {
	made := b.tree.table.HostID
	if made == b.cfg.HostID {
		return nil
	}
	if made < idsPerAgent {
		return fmt.Errorf("cannot use the layer: host id %d belongs to the host", made)
	}
	extents := []extent{{0, 0, idsPerAgent}, {made, b.cfg.HostID, idsPerAgent}}
	m := idMap{UID: extents, GID: extents}
	pending := &pendingNamespace{done: make(chan struct{})}
	pending.file, pending.err = ownedNamespace(m, b.cfg.HostID+ownerID)
	close(pending.done)
	b.maps[m.String()] = pending
	clone, err := b.clone(b.staged("layer"), m, cloneFlags{Dir: true})
	if err != nil {
		return err
	}
	defer clone.Close()
	b.writable = "mapped"
	if err := os.Mkdir(b.staged(b.writable), 0o755); err != nil {
		return err
	}
	return attach(clone, b.staged(b.writable))
}

// place finds the directory of the upper for target: the one that a kept layer
// has for it, or a number that none has. The host may have gained or lost a
// base directory since, so the plan's numbers are those of a new layer only.
func (t table) place(index int, target string) (number string, known bool) {
	for _, upper := range t.Uppers {
		if upper.Prefix == target {
			return filepath.Base(upper.Dir), true
		}
	}
	taken := func(n int) bool {
		return slices.ContainsFunc(t.Uppers, func(u Upper) bool { return filepath.Base(u.Dir) == fmt.Sprint(n) })
	}
	for taken(index) {
		index++
	}
	return fmt.Sprint(index), false
}

// layerPatience bounds the wait for whoever has the layer: a clove diff, or the
// kernel, which lets go of a killed run's mounts a moment after its processes.
const layerPatience = 30 * time.Second

// ErrLayerBusy says that somebody still uses the layer.
var ErrLayerBusy = errors.New("the layer is in use")

// lockImage takes flock(2) on a layer's image, shared to read it. The loop
// device holds the very file that was locked, so the lock lasts until the last
// mount is gone: two mounts of one image would destroy it.
func lockImage(image *os.File, how int) error {
	err := unix.Flock(int(image.Fd()), how|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	locked := make(chan error, 1)
	fd := int(image.Fd())
	go func() {
		for {
			if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
				locked <- err
				return
			}
		}
	}()
	select {
	case err = <-locked:
		return err
	case <-time.After(layerPatience):
		return fmt.Errorf("%w: %s", ErrLayerBusy, image.Name())
	}
}

// Of the ext4 superblock, which begins at superblock; see the kernel's
// Documentation/filesystems/ext4/super.rst.
const (
	superblock = 1024
	stateAt    = superblock + 0x3A
	stateValid = 1 // unmounted as it should be
	stateError = 2
)

// mend checks a layer that was not unmounted, which takes a power cut: however
// clove dies, the kernel unmounts. There is no journal to replay.
func mend(image *os.File) error {
	var state [2]byte
	if _, err := image.ReadAt(state[:], stateAt); err != nil {
		return fmt.Errorf("cannot read the layer: %w", err)
	}
	if binary.LittleEndian.Uint16(state[:])&(stateValid|stateError) == stateValid {
		return nil
	}
	check, err := checkerOfFileSystems()
	if err != nil {
		return fmt.Errorf("cannot find e2fsck, and the layer was not unmounted: %w", err)
	}
	out, err := exec.Command(check, "-p", image.Name()).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 4 { // e2fsck(8): errors corrected
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w: %s", ErrLayerDamaged, check, err, firstLine(strings.TrimSpace(string(out))))
	}
	return nil
}

// ErrLayerDamaged says that a layer did not survive a crash of the host.
var ErrLayerDamaged = errors.New("the layer is damaged")

func checkerOfFileSystems() (string, error) {
	if path, err := exec.LookPath("e2fsck"); err == nil {
		return path, nil
	}
	return exec.LookPath("/sbin/e2fsck")
}
