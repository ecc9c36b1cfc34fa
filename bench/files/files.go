package files

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// epoch is the time of every file that an agent finds, and SOURCE_DATE_EPOCH: 2020-01-01.
var epoch = time.Unix(1577836800, 0)

// Epoch is the time of every file that an agent finds.
func Epoch() time.Time { return epoch }

// Hash is a SHA-256 over names, types, the right to execute, and contents below dir, in the order of
// the names. It follows no link. Other permissions depend on the umask of who unpacked it.
func Hash(dir string) (string, error) {
	sum := sha256.New()
	err := walk(dir, func(e entry) error {
		fmt.Fprintf(sum, "%q %v %t %q %d\n", e.rel, e.info.Mode().Type(), e.info.Mode().IsRegular() && e.info.Mode()&0o100 != 0, e.link, e.size())
		return e.copyTo(sum)
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Copy copies a tree into a directory that exists. Every file gets the time Epoch, so that
// no agent learns when it began from that.
func Copy(from, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := walk(from, func(e entry) error { return e.writeTo(root) }); err != nil {
		return err
	}
	return settle(to)
}

// settle sets the times, deepest first: a new entry would change its directory's.
func settle(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	at := unix.NsecToTimespec(epoch.UnixNano())
	for i := len(all) - 1; err == nil && i >= 0; i-- {
		err = unix.UtimesNanoAt(unix.AT_FDCWD, all[i], []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// Pack writes a tree as a tar archive that is the same for the same tree.
func Pack(dir string, to io.Writer) error {
	archive := tar.NewWriter(to)
	err := walk(dir, func(e entry) error {
		h := &tar.Header{Name: e.rel, Mode: int64(e.info.Mode().Perm()), ModTime: epoch, Format: tar.FormatPAX}
		switch {
		case e.info.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, e.rel+"/"
		case e.info.Mode()&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		default:
			h.Typeflag, h.Size = tar.TypeReg, e.size()
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		return e.copyTo(archive)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// Unpack restores what Pack wrote, into an empty directory.
func Unpack(from io.Reader, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return settle(to)
		}
		if err != nil {
			return err
		}
		name, mode := strings.TrimSuffix(h.Name, "/"), fs.FileMode(h.Mode).Perm()
		switch h.Typeflag {
		case tar.TypeDir:
			err = makeDir(root, name, mode)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeReg:
			err = makeFile(root, name, mode, archive)
		default:
			err = fmt.Errorf("%q is of a type that no attempt has", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// entry is one file, directory or link of a tree.
type entry struct {
	root *os.Root
	rel  string
	info fs.FileInfo
	link string
}

// Used is what the files of a tree occupy, in bytes. It counts the blocks that they have, so
// that a hole costs nothing, and everything that is neither file nor directory as well.
func Used(dir string) (used int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			used += stat.Blocks * 512 // stat(2)
		}
		return nil
	})
	return used, err
}

// walk visits everything below dir but dir itself, by name. Sockets, pipes and devices are
// refused.
func walk(dir string, visit func(entry) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil || rel == "." {
			return err
		}
		e := entry{root: root, rel: rel}
		if e.info, err = d.Info(); err != nil {
			return err
		}
		switch mode := e.info.Mode(); {
		case mode.IsDir(), mode.IsRegular():
		case mode&fs.ModeSymlink != 0:
			if e.link, err = root.Readlink(rel); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither a file, a directory nor a link", rel)
		}
		return visit(e)
	})
}

func (e entry) size() int64 {
	if e.info.Mode().IsRegular() {
		return e.info.Size()
	}
	return 0
}

// copyTo writes the content of a regular file.
func (e entry) copyTo(to io.Writer) error {
	if !e.info.Mode().IsRegular() {
		return nil
	}
	file, err := e.root.Open(e.rel)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

func (e entry) writeTo(root *os.Root) error {
	switch mode := e.info.Mode(); {
	case mode.IsDir():
		return makeDir(root, e.rel, mode.Perm())
	case mode&fs.ModeSymlink != 0:
		return root.Symlink(e.link, e.rel)
	}
	file, err := e.root.Open(e.rel)
	if err != nil {
		return err
	}
	defer file.Close()
	return makeFile(root, e.rel, e.info.Mode().Perm(), file)
}

// The permissions are set afterwards: the umask would cut them.

func makeDir(root *os.Root, rel string, mode fs.FileMode) error {
	if err := root.Mkdir(rel, 0o700); err != nil {
		return err
	}
	return root.Chmod(rel, mode|0o700)
}

func makeFile(root *os.Root, rel string, mode fs.FileMode, from io.Reader) error {
	file, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err == nil {
		err = file.Chmod(mode)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}
