package rootfs

import (
	"crypto/sha256"
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

// skeletonDir is where a layer's image keeps the skeleton: beside the upper
// directories, out of the agent's reach.
const skeletonDir = "skel"

// template is an empty layer of Bytes bytes with the skeleton in it, kept as a
// file that each run copies.
type template struct {
	Path    string
	Bytes   int64
	Entries []entry // the skeleton; none for a root of its own
}

// newTemplate names the template for what is in it, so that a change of the
// host's /etc asks for a new one.
func newTemplate(cfg Config, entries []entry) template {
	hash := sha256.New()
	for _, e := range entries {
		fmt.Fprintln(hash, e)
	}
	name := fmt.Sprintf("ext4-%d-%.8x.img", cfg.DiskBytes, hash.Sum(nil))
	return template{Path: filepath.Join(cfg.StateDir, "templates", name), Bytes: cfg.DiskBytes, Entries: entries}
}

func (t template) String() string {
	return fmt.Sprintf("%s with %d names", filepath.Base(t.Path), len(t.Entries))
}

// open opens the template and makes it at its first use. Concurrent makers each
// make their own and the last rename wins; the files are alike.
func (t template) open() (*os.File, error) {
	file, err := os.Open(t.Path)
	if !errors.Is(err, os.ErrNotExist) {
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(t.Path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of templates: %w", err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(t.Path), ".new-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a template: %w", err)
	}
	defer os.RemoveAll(scratch)
	if file, err = t.make(scratch); err != nil {
		return nil, fmt.Errorf("cannot make a template of %d bytes: %w", t.Bytes, err)
	}
	t.removeOlder()
	return file, nil
}

func (t template) make(scratch string) (*os.File, error) {
	content, image := filepath.Join(scratch, "content"), filepath.Join(scratch, "image")
	for _, name := range []string{"", "upper", "work", skeletonDir} {
		// The sandbox's root looks up names below these, so they are not 0700.
		if err := os.Mkdir(filepath.Join(content, name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, e := range t.Entries {
		loaded, ok := e.load()
		if !ok {
			continue
		}
		if err := loaded.write(filepath.Join(content, skeletonDir)); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = file.Truncate(t.Bytes); err == nil {
		err = makeFileSystem(image, t.Bytes, content)
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(image, t.Path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// removeOlder removes the templates of this size that the host's /etc has
// outgrown. Whoever is copying one has it open.
func (t template) removeOlder() {
	like := filepath.Join(filepath.Dir(t.Path), fmt.Sprintf("ext4-%d-*.img", t.Bytes))
	matches, _ := filepath.Glob(like) // fails on a bad pattern only
	for _, path := range matches {
		if path != t.Path && len(t.Entries) > 0 {
			os.Remove(path)
		}
	}
}

// makeFileSystem formats image with content in it. No journal: the layer need
// not outlive a power cut, and a journal would write everything twice. No
// reserved blocks: nobody in the sandbox is the host's root. metadata_csum and
// lazy_itable_init together leave the inode tables as holes.
func makeFileSystem(image string, size int64, content string) error {
	mkfs, err := exec.LookPath("mke2fs")
	if err != nil {
		mkfs = "/sbin/mke2fs" // not on every PATH
	}
	out, err := exec.Command(mkfs, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0",
		"-i", strconv.FormatInt(inodeRatio(size), 10),
		"-O", "^has_journal,^resize_inode,^64bit,metadata_csum",
		"-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", "-d", content, image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run %s: %w: %s", mkfs, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newImage makes the file for an image of size bytes, one hole. It fails if
// path exists.
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

// fillImage copies the template blank into image, which has its size, and
// leaves the holes.
func fillImage(image, blank *os.File) error {
	if unix.IoctlFileClone(int(image.Fd()), int(blank.Fd())) == nil {
		return nil
	}
	if err := copyExtents(image, blank); err != nil {
		return fmt.Errorf("cannot copy the template to %s: %w", image.Name(), err)
	}
	return nil
}

// copyExtents copies what is not a hole.
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
