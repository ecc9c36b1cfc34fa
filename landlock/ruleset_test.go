package landlock

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// under runs f on a thread that has entered the rules; the thread ends with it. nil: none.
func under(t *testing.T, rules *Rules, f func()) {
	t.Helper()
	if _, err := Version(); err != nil {
		t.Skip(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever
		done <- func() error {
			if rules == nil {
				f()
				return nil
			}
			ruleset, err := rules.Make(func(path string) (*os.File, error) { return os.OpenFile(path, unix.O_PATH, 0) })
			if err != nil {
				return err
			}
			defer ruleset.Close()
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			if err := ll.LandlockRestrictSelf(int(ruleset.Fd()), 0); err != nil {
				return err
			}
			f()
			return nil
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sub := range []string{"free", "free/deep", "shown", "hidden"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, sub, "file"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	// A directory that was opened before, as a descriptor that a program forgot to close.
	leaked, err := os.Open(at("hidden"))
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	attempts := map[string]func() error{
		"write in a free place":          func() error { return os.WriteFile(at("free/new"), nil, 0o644) },
		"rename between directories":     func() error { return os.Rename(at("free/new"), at("free/deep/new")) },
		"truncate in a free place":       func() error { return os.Truncate(at("free/file"), 0) },
		"write a shown file":             func() error { return os.WriteFile(at("shown/file"), nil, 0o644) },
		"make a file beside it":          func() error { return os.WriteFile(at("shown/new"), nil, 0o644) },
		"remove a shown file":            func() error { return os.Remove(at("shown/file")) },
		"truncate a shown file":          func() error { return os.Truncate(at("shown/file"), 0) },
		"read a shown file":              func() error { _, err := os.ReadFile(at("shown/file")); return err },
		"read a hidden file":             func() error { _, err := os.ReadFile(at("hidden/file")); return err },
		"read it by a leaked descriptor": func() error { return readAt(leaked, "file") },
	}
	order := []string{"write in a free place", "rename between directories", "truncate in a free place", "read a shown file", "truncate a shown file",
		"write a shown file", "make a file beside it", "read a hidden file", "read it by a leaked descriptor", "remove a shown file"}
	refused := order[4:]
	rules := &Rules{Files: []Rule{{at("shown"), Read}, {at("free"), Read | Write | Make}, {at("absent"), Read | Write | Make}}}
	under(t, rules, func() {
		for i, name := range order {
			err := attempts[name]()
			if want := i >= len(order)-len(refused); errors.Is(err, unix.EACCES) != want || !want && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	under(t, nil, func() { // control
		for _, name := range refused {
			if err := attempts[name](); err != nil {
				t.Errorf("without rules: %s: %v", name, err)
			}
		}
	})
}

func readAt(dir *os.File, name string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func TestNoTCP(t *testing.T) {
	t.Parallel()
	if version, err := Version(); err == nil && version < versionTCP {
		t.Skipf("version %d knows no ports", version)
	}
	listen := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte(net.IPv4(127, 0, 0, 1).To4())})
	}
	for _, refused := range []bool{true, false} {
		under(t, &Rules{NoTCP: refused}, func() {
			if err := listen(); errors.Is(err, unix.EACCES) != refused {
				t.Errorf("ports are refused: %t, and binding one: %v", refused, err)
			}
		})
	}
}
