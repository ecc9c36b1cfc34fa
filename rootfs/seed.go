package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnCopyOf is the same plan, but its layer begins as a copy of another run's: an image that
// CopyLayer wrote. The kernel trusts an image as it trusts a disk, so one that a user
// other than root could have written is refused.
func (p Plan) OnCopyOf(image string) Plan {
	cfg := p.cfg
	cfg.kept, cfg.seed = true, image
	return planFor(cfg, p.hostInfo)
}

// seedOp makes this run's image from another one. The later steps are as for a kept layer.
type seedOp struct {
	Image string
	From  string
	Bytes int64
}

func (s seedOp) String() string { return fmt.Sprintf("layer %s from a copy of %s", s.Image, s.From) }

// run also refuses an image of another size: the disk limit would not be what was asked for.
func (s seedOp) run(b *builder) error {
	from, size, err := openSeed(s.From)
	if err != nil {
		return err
	}
	defer from.Close()
	if size != s.Bytes {
		return fmt.Errorf("the layer to begin with has %d bytes, and the disk of this run %d", size, s.Bytes)
	}
	image, err := newImage(s.Image, s.Bytes)
	if err != nil {
		return err
	}
	defer image.Close()
	// A start that fails loses nothing: the original stays.
	b.discard.Add("image", func() error { return os.Remove(s.Image) })
	return fillImage(image, from)
}

// openSeed opens and locks an image that CopyLayer wrote, and that only root can have changed.
func openSeed(path string) (image *os.File, size int64, err error) {
	if image, err = os.Open(path); err != nil {
		return nil, 0, fmt.Errorf("cannot open the layer of another run: %w", err)
	}
	info, err := image.Stat()
	if err == nil {
		if stat, known := info.Sys().(*syscall.Stat_t); !known || stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 || !info.Mode().IsRegular() {
			err = fmt.Errorf("the layer of another run is not root's alone: %s", path)
		}
	}
	if err == nil {
		err = lockImage(image, unix.LOCK_SH)
	}
	if err != nil {
		image.Close()
		return nil, 0, err
	}
	return image, info.Size(), nil
}

// CopyLayer writes a copy of a layer that is not in use to a new file, without its holes. The
// caller closes image.
func CopyLayer(image *os.File, to string) error {
	if err := lockImage(image, unix.LOCK_SH); err != nil {
		return err
	}
	info, err := image.Stat()
	if err != nil {
		return err
	}
	scratch := to + ".part"
	if err := os.Remove(scratch); err != nil && !os.IsNotExist(err) {
		return err
	}
	copied, err := newImage(scratch, info.Size())
	if err != nil {
		return err
	}
	if err = fillImage(copied, image); err == nil {
		err = copied.Sync() // before the name, which says that it is whole
	}
	if cerr := copied.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(scratch, to)
	}
	if err != nil {
		os.Remove(scratch)
		return fmt.Errorf("cannot keep the layer in %s: %w", filepath.Dir(to), err)
	}
	return nil
}
