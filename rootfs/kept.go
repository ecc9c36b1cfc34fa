package rootfs

import (
	"context"
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

	"clove.run/clove/internal/descriptor"
)

// OnKeptLayer is the same plan, but on the layer that an earlier run of this ID left.
func (p Plan) OnKeptLayer() Plan {
	cfg := p.cfg
	cfg.kept = true
	return planFor(cfg, p.hostInfo)
}

// keptOp mounts the layer of an earlier run. The skeleton and a copied workspace are as at
// the first start. The host directories below the overlays show their present content.
type keptOp struct{ Image string }

func (s keptOp) String() string { return "kept layer " + s.Image }

// run locks the image before it is checked and attached: e2fsck on a mounted file system
// would damage it.
func (s keptOp) run(b *builder) error {
	image, err := os.OpenFile(s.Image, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("cannot open the layer: %w", err)
	}
	defer image.Close() // the loop device keeps it open
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

// remap lets the agent keep the files that it wrote. They have the host ids of the range
// that was leased when the layer was made, and the present range may be another one. An
// id-mapped mount translates, so nothing is rewritten. The ids below are the host's own,
// which overlayfs uses in its work directories.
func (b *builder) remap() error {
	made := b.tree.table.HostID
	if made == b.cfg.HostID {
		return nil
	}
	if made < idsPerAgent {
		return fmt.Errorf("cannot use the layer: host id %d belongs to the host", made)
	}
	// The uppers are used through this mount from here on (b.writable); the skeleton is
	// cloned with a map of its own.
	clone, err := b.translated("layer", []extent{{0, 0, idsPerAgent}, {made, b.cfg.HostID, idsPerAgent}}, cloneFlags{Dir: true})
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

// translated is a clone of a layer on the stage that shows its ids by these extents. Its
// namespace is not started with the others: the map is known only from the layer's table.
func (b *builder) translated(layer string, extents []extent, flags cloneFlags) (*os.File, error) {
	m := idMap{UID: extents, GID: extents}
	pending := &pendingNamespace{done: make(chan struct{})}
	pending.file, pending.err = ownedNamespace(m, b.cfg.HostID+ownerID)
	close(pending.done)
	b.maps[m.String()] = pending
	return b.clone(b.staged(layer), m, flags)
}

// place finds the upper directory for target: that of the kept layer, or a new number. The
// plan's numbers are valid for a new layer only, because the host may have gained or lost a
// base directory since.
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

// layerPatience bounds the wait for another user of the layer: a clove diff, or the kernel,
// which releases a killed run's mounts a moment after its processes.
const layerPatience = 30 * time.Second

// ErrLayerBusy means that the layer is still in use.
var ErrLayerBusy = errors.New("the layer is in use")

// lockImage takes flock(2) on a layer's image, shared for reading. The loop device keeps
// the locked open file, so the lock lasts until the last mount is gone. Two mounts of one
// image would destroy it.
func lockImage(image *os.File, how int) error {
	ctx, cancel := context.WithTimeout(context.Background(), layerPatience)
	defer cancel()
	err := descriptor.LockWithin(ctx, image, how)
	if ctx.Err() != nil && err == ctx.Err() {
		return fmt.Errorf("%w: %s", ErrLayerBusy, image.Name())
	}
	return err
}

// Fields of the ext4 superblock; see the kernel's Documentation/filesystems/ext4/super.rst.
const (
	superblock = 1024
	stateAt    = superblock + 0x3A
	stateValid = 1 // cleanly unmounted
	stateError = 2
)

// mend checks a layer that was not unmounted. Only a power cut causes that, because the
// kernel unmounts however clove dies. There is no journal to replay.
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

// ErrLayerDamaged means that a layer did not survive a crash of the host.
var ErrLayerDamaged = errors.New("the layer is damaged")

func checkerOfFileSystems() (string, error) {
	if path, err := exec.LookPath("e2fsck"); err == nil {
		return path, nil
	}
	return exec.LookPath("/sbin/e2fsck")
}
