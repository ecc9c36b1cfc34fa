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

// inodeRatio is mke2fs's own rule: a file for every 4 KiB of a small disk, for
// every 16 KiB of one from 512 MiB on.
func inodeRatio(size int64) int64 {
	if size < 512<<20 {
		return 4096
	}
	return 16384
}

// template returns the path of an empty file system of size bytes, made at its
// first use. Concurrent makers each make their own and the last rename wins;
// the files are alike.
func template(stateDir string, size int64) (string, error) {
	dir := filepath.Join(stateDir, "templates")
	path := filepath.Join(dir, fmt.Sprintf("ext4-%d.img", size))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the directory of templates: %w", err)
	}
	temp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", fmt.Errorf("cannot make a template: %w", err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := temp.Truncate(size); err != nil {
		return "", fmt.Errorf("cannot make a template of %d bytes: %w", size, err)
	}
	if err := makeFileSystem(temp.Name(), size); err != nil {
		return "", err
	}
	if err := temp.Sync(); err != nil {
		return "", fmt.Errorf("cannot write template %s: %w", temp.Name(), err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return "", fmt.Errorf("cannot name the template: %w", err)
	}
	return path, nil
}

// makeFileSystem formats image. No journal: the layer need not outlive a power
// cut, and a journal would write everything twice. No reserved blocks: nobody
// in the sandbox is the host's root. metadata_csum and lazy_itable_init
// together leave the inode tables as holes.
func makeFileSystem(image string, size int64) error {
	mkfs, err := exec.LookPath("mke2fs")
	if err != nil {
		mkfs = "/sbin/mke2fs" // not on every PATH
	}
	out, err := exec.Command(mkfs, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0",
		"-i", strconv.FormatInt(inodeRatio(size), 10),
		"-O", "^has_journal,^resize_inode,^64bit,metadata_csum",
		"-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot make a file system of %d bytes with %s: %w: %s", size, mkfs, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// cloneImage makes path a copy of template that shares its holes. It fails if
// path exists.
func cloneImage(template, path string) (image *os.File, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of layers: %w", err)
	}
	from, err := os.Open(template)
	if err != nil {
		return nil, fmt.Errorf("cannot open the template: %w", err)
	}
	defer from.Close()
	image, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot make the layer's image: %w", err)
	}
	defer func() {
		if err != nil {
			image.Close()
			os.Remove(path)
		}
	}()
	if unix.IoctlFileClone(int(image.Fd()), int(from.Fd())) == nil {
		return image, nil
	}
	if err := copyExtents(image, from); err != nil {
		return nil, fmt.Errorf("cannot copy the template to %s: %w", path, err)
	}
	return image, nil
}

// copyExtents copies what is not a hole.
func copyExtents(to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := to.Truncate(info.Size()); err != nil {
		return err
	}
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
