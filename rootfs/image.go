package rootfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inodeRatio is mke2fs's own default: an inode for every 4 KiB of a small disk, for every
// 16 KiB from 512 MiB on.
func inodeRatio(size int64) int64 {
	if size < 512<<20 {
		return 4096
	}
	return 16384
}

// makeFileSystem formats image with content in it. There is no journal, because the layer
// need not survive a power cut and a journal would write everything twice; no reserved
// blocks, because no process in the sandbox is the host's root. metadata_csum together with
// lazy_itable_init leaves the inode tables as holes. Without -b, some versions of mke2fs
// choose smaller blocks for a small disk, and without -I smaller inodes, which have
// times in seconds only. resize_inode and 64bit are for growing and for
// disks above 16 TiB.
func makeFileSystem(image string, size int64, content string) error {
	mkfs, err := MakerOfFileSystems()
	if err != nil {
		return fmt.Errorf("cannot find mke2fs: %w", err)
	}
	out, err := exec.Command(mkfs, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0",
		"-I", "256", "-i", strconv.FormatInt(inodeRatio(size), 10),
		"-O", "^has_journal,^resize_inode,^64bit,metadata_csum",
		"-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", "-d", content, image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run %s: %w: %s", mkfs, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// MakerOfFileSystems returns the path of mke2fs. Its directory is not in every PATH.
func MakerOfFileSystems() (string, error) {
	if path, err := exec.LookPath("mke2fs"); err == nil {
		return path, nil
	}
	return exec.LookPath("/sbin/mke2fs")
}

// newImage makes the file for an image of size bytes, as one hole. It fails if path exists.
func newImage(path string, size int64) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of layers: %w", err)
	}
	image, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot make the layer's image: %w", err)
	}
	if err := image.Truncate(size); err != nil {
		image.Close()
		return nil, errors.Join(fmt.Errorf("cannot size the layer's image: %w", err), os.Remove(path))
	}
	return image, nil
}

// fillImage copies the template blank, of the same size, into image and leaves the holes. A
// reflink (FICLONE) is tried first.
func fillImage(image, blank *os.File) error {
	if unix.IoctlFileClone(int(image.Fd()), int(blank.Fd())) == nil {
		return nil
	}
	if err := copyExtents(image, blank); err != nil {
		return fmt.Errorf("cannot copy the template to %s: %w", image.Name(), err)
	}
	return nil
}

// copyExtents copies everything except holes.
func copyExtents(to, from *os.File) error {
	for at := int64(0); ; {
		start, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := from.Seek(start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := from.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(start, io.SeekStart); err != nil {
			return err
		}
		// io.CopyN uses copy_file_range(2) between two files.
		if _, err := io.CopyN(to, from, end-start); err != nil {
			return err
		}
		at = end
	}
}
