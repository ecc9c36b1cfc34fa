package descriptor

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestUseKeepsTheModeAndRefusesAClosedFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var flags int
	look := func(fd int) (err error) { flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); return err }
	if err := Use(r, look); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %#x, %v: the descriptor of a pipe is non-blocking", flags, err)
	}
	failure := errors.New("failed")
	if err := Use(r, func(int) error { return failure }); err != failure {
		t.Errorf("%v, not the function's error", err)
	}
	r.Close()
	if err := Use(r, look); err == nil {
		t.Error("a closed file's descriptor was used")
	}
}

func TestExclusivelyHoldsTheLockUntilTheFunctionReturns(t *testing.T) {
	dir := t.TempDir()
	other, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = Exclusively(dir, func() error { return Lock(other, unix.LOCK_EX|unix.LOCK_NB) })
	if !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("%v: the directory is not locked meanwhile", err)
	}
	if err := Lock(other, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("%v: the directory is locked afterwards", err)
	}
	if err := Exclusively(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v for a directory that is not there", err)
	}
}

// In a process of its own, because other tests' descriptors must stay open.
func TestCloseInherited(t *testing.T) {
	if os.Getenv("CLOSE_INHERITED") != "" {
		if err := CloseInherited(3); err != nil {
			t.Fatal(err)
		}
		_, err3 := unix.FcntlInt(3, unix.F_GETFD, 0)
		_, err4 := unix.FcntlInt(4, unix.F_GETFD, 0)
		if err3 != nil || err4 != unix.EBADF {
			t.Errorf("descriptor 3: %v, 4: %v", err3, err4)
		}
		return
	}
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCloseInherited$")
	cmd.Env = append(os.Environ(), "CLOSE_INHERITED=1")
	cmd.ExtraFiles = []*os.File{file, file}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestConnected(t *testing.T) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	to := &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	connect := func(ctx context.Context) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "socket")
		defer file.Close()
		if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
			return err
		}
		return Connected(ctx, file)
	}
	if err := connect(t.Context()); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := connect(cancelled); err != context.Canceled {
		t.Errorf("%v with a context that has ended", err)
	}
	listener.Close()
	if err := connect(t.Context()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%v where no process listens", err)
	}
}

func TestLockWithinWaitsAsLongAsItMay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	first := open()
	if err := LockWithin(over, first, unix.LOCK_EX); err != nil {
		t.Fatalf("a lock that is free: %v", err)
	}
	late := open()
	if err := LockWithin(over, late, unix.LOCK_EX); !errors.Is(err, context.Canceled) {
		t.Fatalf("a lock that is held: %v", err)
	}
	second, locked := open(), make(chan error, 1)
	go func() { locked <- LockWithin(context.Background(), second, unix.LOCK_EX) }()
	select {
	case err := <-locked:
		t.Fatalf("two have the lock: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	first.Close()
	if err := <-locked; err != nil {
		t.Error(err)
	}
}

// A path with ".." is opened beside a process that renames without end. The log says how many the kernel alone refuses.
func TestOpenat2BesideRenames(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	renamed := make(chan struct{})
	go func() {
		defer close(renamed)
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		_ = os.Mkdir(one, 0o755) // else all renames fail, and the control sees it
		for ctx.Err() == nil {
			_ = os.Rename(one, two)
			_ = os.Rename(two, one)
		}
	}()
	defer func() { cancel(); <-renamed }()
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	refused := 0
	for range 5000 {
		fd, err := Openat2(int(root.Fd()), "a/b/../../a/b/../b", how)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if fd, err = unix.Openat2(int(root.Fd()), "a/b/../../a/b/../b", how); err == unix.EAGAIN {
			refused++
		} else if err == nil {
			unix.Close(fd)
		}
	}
	t.Logf("the kernel alone refused %d of 5000", refused)
}
