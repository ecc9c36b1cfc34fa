package seccomp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The real kernel's answers. The test binary runs itself as a child that loads a filter (or
// none: the control) and then makes the given calls, or executes a program. No privilege is
// needed: no_new_privs is set first.

const childVariable = "CLOVE_SECCOMP_TEST_CHILD"

// orders are what the child has to do.
type orders struct {
	Filter []unix.SockFilter // empty: no filter
	Second []byte            // one more, as Program makes it, loaded as clove-init does
	Calls  []systemCall
	Exec   []string // instead of calls
}

type systemCall struct {
	Number uintptr
	Args   [6]uint64
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// child carries out the orders from stdin and writes the errnos to stdout.
func child() int {
	runtime.LockOSThread()
	var o orders
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fail(err)
	}
	if len(o.Filter) > 0 {
		if err := load(o.Filter); err != nil {
			return fail(err)
		}
	}
	if len(o.Second) > 0 {
		if err := loadByPrctl(o.Second); err != nil {
			return fail(err)
		}
	}
	if len(o.Exec) > 0 {
		return fail(unix.Exec(o.Exec[0], o.Exec, os.Environ()))
	}
	answers := []string{}
	for _, c := range o.Calls {
		result, _, errno := unix.Syscall6(c.Number, uintptr(c.Args[0]), uintptr(c.Args[1]), uintptr(c.Args[2]),
			uintptr(c.Args[3]), uintptr(c.Args[4]), uintptr(c.Args[5]))
		answers = append(answers, unix.ErrnoName(errno))
		if errno == 0 && c.Number == unix.SYS_SOCKET {
			unix.Close(int(result))
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	os.Stderr.WriteString(err.Error() + "\n")
	return 1
}

// load installs the filter on every thread of this process.
func load(program []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}

// loadByPrctl adds a filter to this thread only.
func loadByPrctl(program []byte) error {
	fprog := unix.SockFprog{Len: uint16(len(program) / unix.SizeofSockFilter), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}

// sockFilters is the program as the kernel takes it.
func (f filter) sockFilters(t testing.TB) []unix.SockFilter {
	t.Helper()
	raw, err := bpf.Assemble(f.instructions)
	if err != nil {
		t.Fatal(err)
	}
	var program []unix.SockFilter
	for _, r := range raw {
		program = append(program, unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	return program
}

// runChild sends the child its orders and returns its output.
func runChild(t *testing.T, o orders) (string, error) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdin = bytes.NewReader(text)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// kernelCalls are harmless: with these arguments each fails, or changes nothing that outlives
// the child. control is the kernel's answer without a filter; there may be several, because
// kernels are configured differently.
var kernelCalls = []struct {
	name    string
	args    [6]uint64
	control string
}{
	{"getpid", [6]uint64{}, ""},
	{"unshare", [6]uint64{}, ""},
	{"setns", [6]uint64{^uint64(0)}, "EBADF"},
	{"mount", [6]uint64{}, "EFAULT"},
	{"umount2", [6]uint64{}, "EFAULT"},
	{"open_tree", [6]uint64{^uint64(0)}, "EFAULT"},
	{"clone3", [6]uint64{}, "EINVAL"},
	{"clone", [6]uint64{unix.CLONE_NEWNS | unix.CLONE_FS}, "EINVAL"},
	{"clone", [6]uint64{(unix.CLONE_NEWNS | unix.CLONE_FS) | high}, "EINVAL"},
	{"clone", [6]uint64{unix.CLONE_SIGHAND}, "EINVAL"},
	{"add_key", [6]uint64{}, "EFAULT"},
	{"request_key", [6]uint64{}, "EFAULT"},
	{"keyctl", [6]uint64{9999}, "ENOTSUP"},
	{"ptrace", [6]uint64{9999}, "ESRCH"},
	{"pidfd_getfd", [6]uint64{^uint64(0), ^uint64(0)}, "EBADF"},
	{"name_to_handle_at", [6]uint64{^uint64(0)}, "EFAULT"},
	{"personality", [6]uint64{0xffffffff}, ""},
	{"personality", [6]uint64{0x40000}, ""}, // ADDR_NO_RANDOMIZE
	{"personality", [6]uint64{0x40000 | high}, ""},
	{"socket", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, ""},
	{"socket", [6]uint64{unix.AF_INET | high, unix.SOCK_DGRAM | high}, ""},
	{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, ""},
	{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}, ""},
	{"socket", [6]uint64{unix.AF_NETLINK | high, unix.SOCK_RAW, unix.NETLINK_GENERIC | high}, ""},
	{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, ""},
	{"socket", [6]uint64{77}, "EAFNOSUPPORT"},
	{"socketpair", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, "EFAULT"},
	{"setsockopt", [6]uint64{^uint64(0), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, "EBADF"},
	{"setsockopt", [6]uint64{^uint64(0), unix.SOL_SOCKET | high, unix.SO_ATTACH_FILTER | high}, "EBADF"},
	{"setsockopt", [6]uint64{^uint64(0), unix.SOL_SOCKET, unix.SO_KEEPALIVE}, "EBADF"},
	{"prctl", [6]uint64{unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER}, "EFAULT"},
	{"prctl", [6]uint64{unix.PR_SET_SECCOMP | high, unix.SECCOMP_MODE_FILTER}, "EFAULT"},
	{"seccomp", [6]uint64{unix.SECCOMP_SET_MODE_FILTER}, "EFAULT"},
	{"ioctl", [6]uint64{^uint64(0), unix.TIOCSTI}, "EBADF"},
	{"ioctl", [6]uint64{^uint64(0), unix.TIOCSTI | high}, "EBADF"},
	{"ioctl", [6]uint64{^uint64(0), unix.TIOCLINUX | 1<<63}, "EBADF"},
	{"ioctl", [6]uint64{^uint64(0), unix.TCGETS}, "EBADF"},
	{"ioctl", [6]uint64{^uint64(0), unix.TIOCSTI + 1}, "EBADF"},
	{"mknodat", [6]uint64{^uint64(0), 0, unix.S_IFIFO}, "EFAULT"},
	{"mknodat", [6]uint64{^uint64(0), 0, unix.S_IFCHR}, "EFAULT"},
	{"mknodat", [6]uint64{^uint64(0), 0, unix.S_IFCHR | high}, "EFAULT"},
	{"renameat2", [6]uint64{^uint64(0), 0, ^uint64(0), 0, unix.RENAME_WHITEOUT}, "EFAULT"},
	{"renameat2", [6]uint64{^uint64(0), 0, ^uint64(0), 0, unix.RENAME_NOREPLACE}, "EFAULT"},
	{"memfd_create", [6]uint64{0, unix.MFD_HUGETLB}, "EFAULT"},
	{"mmap", [6]uint64{0, 0, 0, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}, "EINVAL"},
	{"mmap", [6]uint64{0, 0, 0, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, "EINVAL"},
	{"io_setup", [6]uint64{}, "EFAULT"},
	{"memfd_create", [6]uint64{}, "EFAULT"},
	{"msgget", [6]uint64{12345}, "ENOENT"},
	{"adjtimex", [6]uint64{}, "EFAULT"},
}

func TestKernelAnswersAsSimulated(t *testing.T) {
	t.Parallel()
	var calls []systemCall
	for _, row := range kernelCalls {
		number, err := libseccomp.GetSyscallFromName(row.name)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, systemCall{uintptr(number), row.args})
	}
	free := answers(t, orders{Calls: calls})
	for i, row := range kernelCalls {
		if free[i] != row.control {
			t.Errorf("control: %s%#x: %q, want %q", row.name, row.args, free[i], row.control)
		}
	}
	for _, name := range filtered {
		f := compileBuiltin(t, name)
		held := answers(t, orders{Filter: f.sockFilters(t), Calls: calls})
		refused := 0
		for i, row := range kernelCalls {
			want := f.run(t, call{name: row.name, args: row.args})
			if want == "allow" {
				want = row.control
			} else {
				refused++
			}
			if held[i] != want {
				t.Errorf("%s: %s%#x: %q, simulated %q", name, row.name, row.args, held[i], want)
			}
		}
		if refused < 20 {
			t.Errorf("%s refuses %d of these calls only", name, refused)
		}
	}
}

func answers(t *testing.T, o orders) []string {
	t.Helper()
	output, err := runChild(t, o)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var list []string
	if err := json.Unmarshal([]byte(output), &list); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return list
}

// Every Debian has perl-base; its syscall() makes any call by number.
const perl = "/usr/bin/perl"

func TestX32CallKills(t *testing.T) {
	t.Parallel()
	script := []string{perl, "-e", `syscall(0x40000000 + 39); print "alive"`}
	if output, err := runChild(t, orders{Exec: script}); err != nil || output != "alive" {
		t.Fatalf("control: %v: %s", err, output)
	}
	output, err := runChild(t, orders{Filter: compileBuiltin(t, Standard).sockFilters(t), Exec: script})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
		t.Errorf("%v: %s, want SIGSYS", err, output)
	}
}

// programs do ordinary work. Those that are not installed here are skipped; every Debian has
// sh and perl.
var programs = []struct {
	profiles string
	argv     []string
	want     string
}{
	{"standard strict", []string{"/bin/sh", "-c", `d=$(mktemp -d) && echo hi >$d/a && cp $d/a $d/b && cat $d/b | tr h H; rm -r $d`}, "Hi\n"},
	{"standard strict", []string{perl, "-e", `pipe R, W; if (!fork) { print W "child"; exit } close W; wait; print <R>`}, "child"},
	{"standard strict", []string{"/bin/sh", "-c", `mkfifo /tmp/clove-$$ && test -p /tmp/clove-$$ && rm /tmp/clove-$$ && echo fifo`}, "fifo\n"},
	{"standard strict", []string{"/usr/bin/python3", "-c", `
import subprocess, threading, tempfile, multiprocessing, asyncio
t = threading.Thread(target=lambda: None); t.start(); t.join()
f = tempfile.NamedTemporaryFile(); f.write(b"x"); f.flush()
assert subprocess.run(["cat", f.name], capture_output=True).stdout == b"x"
a, b = multiprocessing.Pipe(); a.send(1); assert b.recv() == 1
asyncio.run(asyncio.sleep(0))
print("python")`}, "python\n"},
	{"standard", []string{"/usr/bin/python3", "-c", `
import socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); print("tcp")`}, "tcp\n"},
	{"standard strict", []string{"/usr/bin/node", "-e", `
require("fs").writeFileSync("/dev/null", "x");
console.log(require("child_process").execSync("echo node").toString().trim())`}, "node\n"},
	{"standard strict", []string{"/usr/bin/git", "--version"}, "git version"},
	{"standard strict", []string{"/usr/bin/java", "-version"}, ""},
	{"standard strict minimal", []string{"/usr/bin/python3", "-c", "import os; print(os.getsid(0) >= 0)"}, "True"},
}

func TestOrdinaryProgramsRun(t *testing.T) {
	t.Parallel()
	for _, row := range programs {
		if _, err := os.Stat(row.argv[0]); err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		for _, name := range strings.Fields(row.profiles) {
			output, err := runChild(t, orders{Filter: compileBuiltin(t, name).sockFilters(t), Exec: row.argv})
			if err != nil || !strings.HasPrefix(output, row.want) {
				t.Errorf("%s: %.60q: %v: %s", name, row.argv, err, output)
			}
		}
	}
}
