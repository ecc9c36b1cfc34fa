package probe

import (
	"os"
	command "os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, plain, sub := filepath.Join(dir, "program"), filepath.Join(dir, "plain"), filepath.Join(dir, "sub")
	for path, mode := range map[string]os.FileMode{program: 0o755, plain: 0o644} {
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		kind, what string
		done       bool
	}{
		{"read", plain, true}, {"read", dir, true}, {"read", dir + "/none", false}, {"read", plain + "/x", false}, {"read", "/dev/null", true},
		{"write", plain, true}, {"write", dir, true}, {"write", sub + "/deep/new", true}, {"write", plain + "/x", false}, {"write", plain + "/x/y", false},
		{"exec", program, true}, {"exec", plain, false}, {"exec", dir, false}, {"exec", "/proc/version", false},
	} {
		if f := (Try{Kind: row.kind, What: row.what}).found(nil); f.Done != row.done || f.Detail == "" || !row.done && f.Errno == 0 {
			t.Errorf("%s %s: %+v", row.kind, row.what, f)
		}
	}
	if text, err := os.ReadFile(plain); err != nil || string(text) != "x" {
		t.Errorf("the file is changed: %q, %v", text, err)
	}
	if _, err := os.Stat(sub); err == nil {
		t.Error("a directory is made")
	}
}

// Calls that end, stop or damage their process do nothing to this one.
func TestCalls(t *testing.T) {
	for name, row := range map[string]struct {
		number int32
		args   [6]uint64
		errno  unix.Errno
	}{
		"getpid": {number: unix.SYS_GETPID}, "exit_group": {number: unix.SYS_EXIT_GROUP}, "pause": {number: unix.SYS_PPOLL}, "rt_sigreturn": {number: unix.SYS_RT_SIGRETURN},
		"kill": {number: unix.SYS_KILL, args: [6]uint64{1 << 22, 0}, errno: unix.ESRCH}, "openat": {number: unix.SYS_OPENAT, errno: unix.EFAULT}, "close": {number: unix.SYS_CLOSE},
		"none": {number: 1000, errno: unix.ENOSYS}, "dup of nothing": {number: unix.SYS_DUP, args: [6]uint64{1 << 20}, errno: unix.EBADF},
	} {
		if f := made(row.number, row.args); name != "rt_sigreturn" && (!f.Done || f.Errno != int(row.errno)) || f.Untried || f.Killed {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, row := range []struct {
		number  int32
		errno   unix.Errno
		untried bool
	}{{unix.SYS_GETPID, 0, false}, {unix.SYS_OPENAT, unix.EFAULT, false}, {unix.SYS_PPOLL, 0, false}, {unix.SYS_EXIT_GROUP, 0, true}, {unix.SYS_KILL, 0, false}} {
		if f := inThread(row.number, [6]uint64{}); f.Untried != row.untried || f.Done == row.untried || f.Errno != int(row.errno) {
			t.Errorf("in a thread, %d: %+v", row.number, f)
		}
	}
}

// Connections and grants are the caller's, once there can be a socket.
func TestTheRestIsTheCallers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{Connect, "tool", "model"} {
		if f := (Try{Kind: kind, What: "x"}).found(func(t Try) Found { return Found{Detail: t.Kind} }); f.Detail != kind {
			t.Errorf("%s: %+v", kind, f)
		}
	}
}

func TestLinesComeBack(t *testing.T) {
	t.Parallel()
	tries := []Try{{Kind: "read", What: "/a \"b\"\n\x00\xff"}, {Kind: "syscall", Number: 165, Args: [6]uint64{1<<64 - 1, 0, 7}}, {Kind: "connect", What: "[::1]:1", UDP: true}}
	if got, ok := ParseOrders(Orders(tries)); !ok || !reflect.DeepEqual(got, tries) {
		t.Errorf("%+v, %t", got, ok)
	}
	for _, f := range []Found{{Done: true, Errno: 1, Detail: "a\nb", Addresses: []string{"1.2.3.4:5", "x"}}, {Untried: true, Killed: true, Addresses: []string{}}} {
		if got, ok := ParseFound(f.Line()); !ok || !reflect.DeepEqual(got, f) || strings.Count(f.Line(), "\n") != 1 {
			t.Errorf("%+v, %t, want %+v", got, ok, f)
		}
	}
	for _, text := range []string{"", "\n", "x", "\"a", "\"true\"\n", "\"true\"\"x\"\"\"\"\"\"\"\n", "`true``1``````", "\"true\"\"1\"\"\"\"\"\"\"\nmore"} {
		if f, ok := ParseFound(text); ok {
			t.Errorf("%q is %+v", text, f)
		}
		if all, ok := ParseOrders(text); ok && text != "" {
			t.Errorf("%q is %+v", text, all)
		}
	}
}

// Go initialises this package before packages that open files only without these imports.
func TestImportsAreFew(t *testing.T) {
	t.Parallel()
	out, err := command.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"unicode", "reflect", "strings", "fmt", "encoding/json", "golang.org/x/sys/unix"} {
		if strings.Contains("\n"+string(out), "\n"+pkg+"\n") {
			t.Errorf("it needs %s", pkg)
		}
	}
}
