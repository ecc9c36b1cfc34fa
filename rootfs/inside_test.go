package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRenamesElsewhereDisturbNoBuild: a path with ".." in a link is opened while unrelated
// files are renamed. The control: the system call alone fails now and then (EAGAIN of
// openat2).
func TestRenamesElsewhereDisturbNoBuild(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, err := range []error{os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.Mkdir(filepath.Join(dir, "home"), 0o755),
		os.Symlink("../../home", filepath.Join(dir, "a/b/link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		name, other := filepath.Join(elsewhere, "one"), filepath.Join(elsewhere, "two")
		_ = os.WriteFile(name, nil, 0o600) // if it fails, the control notices
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(name, other)
				_ = os.Rename(other, name)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	b := &builder{root: root}
	disturbed := 0
	for deadline := time.Now().Add(time.Minute); disturbed < 100 && time.Now().Before(deadline); {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := unix.Openat2(int(root.Fd()), "a/b/link", &how)
		if err == nil {
			unix.Close(fd)
		} else if errors.Is(err, unix.EAGAIN) {
			disturbed++
		}
		file, err := b.openInside("a/b/link", unix.O_DIRECTORY)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	if disturbed == 0 {
		t.Error("control: no rename disturbs the system call")
	}
}
