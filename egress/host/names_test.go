package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhomAContainersNamesAreAskedOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, real := filepath.Join(dir, "local"), filepath.Join(dir, "real")
	for path, text := range map[string]string{local: "nameserver 127.0.0.53\n", real: "nameserver 192.0.2.53\nnameserver ::1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	absent := filepath.Join(dir, "absent")
	for name, row := range map[string]struct {
		text string
		host []string
		want string
	}{
		"a cluster's":                   {"search a.test\nnameserver 10.96.0.10\n", []string{real}, "[10.96.0.10:53]"},
		"docker's own":                  {"nameserver 127.0.0.11\n", []string{real}, "[192.0.2.53:53]"},
		"docker's, systemd on the host": {"nameserver 127.0.0.11\n", []string{local, real}, "[192.0.2.53:53]"},
		"docker's beside another":       {"nameserver 127.0.0.11\nnameserver 192.0.2.1\n", []string{absent, real}, "[192.0.2.1:53 192.0.2.53:53]"},
		"docker's, and no other":        {"nameserver 127.0.0.11\n", []string{local, absent}, "[]"},
		"none":                          {"", []string{real}, "[]"},
	} {
		if got := fmt.Sprint(serversOf(row.text, row.host...)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestAContainersResolvConfIsReadInside: the image's author chooses what is at that path.
func TestAContainersResolvConfIsReadInside(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lay  func(root string) error
		want string
	}{
		"a file": {func(root string) error {
			return os.WriteFile(filepath.Join(root, "etc/resolv.conf"), []byte("nameserver 192.0.2.1\n"), 0o644)
		}, "nameserver 192.0.2.1\n"},
		"nothing": {func(string) error { return nil }, ""},
		"a link to the host's": {func(root string) error {
			return os.Symlink("/etc/passwd", filepath.Join(root, "etc/resolv.conf"))
		}, ""},
		"a link within": {func(root string) error {
			if err := os.WriteFile(filepath.Join(root, "it"), []byte("inside"), 0o644); err != nil {
				return err
			}
			return os.Symlink("/it", filepath.Join(root, "etc/resolv.conf"))
		}, "inside"},
		"a pipe":      {func(root string) error { return unix.Mkfifo(filepath.Join(root, "etc/resolv.conf"), 0o644) }, ""},
		"a directory": {func(root string) error { return os.Mkdir(filepath.Join(root, "etc/resolv.conf"), 0o755) }, ""},
	} {
		path := t.TempDir()
		if err := os.Mkdir(filepath.Join(path, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := row.lay(path); err != nil {
			t.Fatal(err)
		}
		root, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, given := range []bool{true, false} {
			want := row.want
			if !given {
				want = ""
			}
			got, ok, err := resolvConfOf(root, func(_, file *os.File) (bool, error) { return given, nil })
			if got != want || ok != (want != "") || err != nil {
				t.Errorf("%s, given %v: %q, %v, %v", name, given, got, ok, err)
			}
		}
		root.Close()
	}
}

func TestTheHostsServers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 127.0.0.53\nnameserver 192.0.2.53\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(hostServers("/absent", path)); got != "[192.0.2.53:53]" {
		t.Error(got)
	}
	if got := hostServers("/absent"); got != nil {
		t.Error(got)
	}
}

// TestWhatTheImageHasIsNotGiven: neither the image's own file nor a writable one is used.
func TestWhatTheImageHasIsNotGiven(t *testing.T) {
	t.Parallel()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]bool{"/etc/passwd": false, "/dev/null": false} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := isGiven(root, file); got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		file.Close()
	}
}
