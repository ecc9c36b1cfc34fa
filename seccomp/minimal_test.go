package seccomp

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// threadFlags are those with which glibc's pthread_create calls clone.
const threadFlags = 0x3d0f00

var minimalCalls = []struct {
	call call
	want string
}{
	{call{name: "openat"}, "allow"},
	{call{name: "execve"}, "allow"},
	{call{name: "clone", args: [6]uint64{threadFlags}}, "allow"},
	{call{name: "clone", args: [6]uint64{threadFlags | high}}, "allow"},
	{call{name: "clone", args: [6]uint64{uint64(unix.SIGCHLD)}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{uint64(unix.SIGCHLD) | unix.CLONE_THREAD<<32}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_VFORK | unix.CLONE_VM | uint64(unix.SIGCHLD)}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{threadFlags | unix.CLONE_NEWUSER}}, "EPERM"},
	{call{name: "clone3"}, "ENOSYS"},
	{call{name: "fork"}, "EPERM"},
	{call{name: "vfork"}, "EPERM"},
	{call{name: "execveat"}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_UNIX}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}}, "EPERM"},
	{call{name: "socketpair", args: [6]uint64{unix.AF_UNIX}}, "EPERM"},
	{call{name: "sendmsg"}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TCGETS | high}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCGWINSZ}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TCSETS}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.FICLONE}}, "EPERM"},
	{call{name: "fcntl", args: [6]uint64{0, unix.F_DUPFD_CLOEXEC}}, "allow"},
	{call{name: "fcntl", args: [6]uint64{0, unix.F_SETLEASE}}, "EPERM"},
	{call{name: "fcntl", args: [6]uint64{0, unix.F_SETOWN}}, "EPERM"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_NAME}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_VMA}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_DUMPABLE, 1}}, "EPERM"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER}}, "EINVAL"},
	{call{name: "seccomp"}, "ENOSYS"},
	{call{name: "mmap", args: [6]uint64{0, 0, 0, unix.MAP_HUGETLB}}, "EPERM"},
	{call{name: "chmod"}, "EPERM"},
	{call{name: "symlinkat"}, "EPERM"},
	{call{name: "inotify_init1"}, "EPERM"},
	{call{name: "timer_create"}, "EPERM"},
	{call{name: "memfd_create"}, "EPERM"},
	{call{name: "ptrace"}, "EPERM"},
	{call{name: "tgkill"}, "allow"},
	{call{number: 1000}, "ENOSYS"},
}

func TestMinimalAnswers(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Minimal)
	for _, row := range minimalCalls {
		if got := f.run(t, row.call); got != row.want {
			t.Errorf("%v: %s, want %s", row.call, got, row.want)
		}
	}
}

// Each row of minimal refuses something that strict allows.
func TestMinimalRowsAreNotIdle(t *testing.T) {
	t.Parallel()
	strict := mustProfile(t, Strict)
	for _, row := range minimalRefusals {
		for _, name := range row.names {
			if !named(strict, name) {
				t.Errorf("%s: strict refuses %s already", row.group, name)
			}
		}
	}
}

// In a directory of the host, the files of minimal have no set-user-ID bit either, and no call
// that it refuses comes back by a condition.
func TestMinimalWithoutSetID(t *testing.T) {
	t.Parallel()
	p, err := ProfileWithout(Minimal, Without{SetID: true})
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[call]string{
		{name: "openat", args: [6]uint64{0, 0, unix.O_CREAT, 0o4755}}: "EPERM",
		{name: "openat", args: [6]uint64{0, 0, unix.O_CREAT, 0o755}}:  "allow",
		{name: "openat2"}:                          "ENOSYS",
		{name: "chmod", args: [6]uint64{0, 0o755}}: "EPERM",
	} {
		if got := Decide(p, c.name, c.args).String(); got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}

// python is Debian's interpreter: one below /usr/local may be a script that starts another.
const python = "/usr/bin/python3"

// attempts has Python compute, and then try what minimal refuses. It prints what each attempt
// came to.
const attempts = `
import os, sys, json, math, threading, tempfile, hashlib, fractions, decimal, random, time, shutil, socket, subprocess
results = []
threads = [threading.Thread(target=lambda n=n: results.append(math.factorial(n))) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a")
    with open(path, "w") as f: f.write(json.dumps(sorted(results)))
    shutil.copyfile(path, path + "2")
    os.replace(path + "2", path)
    with open(path) as f: assert json.load(f)[-1] == 5040
time.sleep(0.001); random.random(); hashlib.sha256(b"x").hexdigest(); sys.stdout.isatty(); os.cpu_count()
assert fractions.Fraction(1, 3) + decimal.Decimal(0).as_integer_ratio()[0] == fractions.Fraction(1, 3)
def attempt(do):
    try: do()
    except OSError as e: return e.errno
    return 0
def fork():
    if os.fork() == 0: os._exit(0)
    os.wait()
print(json.dumps({
    "fork": attempt(fork),
    "subprocess": attempt(lambda: subprocess.run(["/bin/true"])),
    "inet": attempt(lambda: socket.socket(socket.AF_INET)),
    "unix": attempt(lambda: socket.socket(socket.AF_UNIX)),
    "pair": attempt(socket.socketpair),
    "pipe": attempt(os.pipe),
    "link": attempt(lambda: os.symlink("x", "/tmp/clove-minimal-%d" % os.getpid()) or os.unlink("/tmp/clove-minimal-%d" % os.getpid())),
}))
`

// Python computes under minimal as it does without, and makes neither process nor socket.
func TestPythonComputesUnderMinimal(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(python); err != nil {
		t.Skipf("needs %v", err)
	}
	run := func(o orders) map[string]int {
		o.Exec = []string{python, "-c", attempts}
		output, err := runChild(t, o)
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		answers := map[string]int{}
		if err := json.Unmarshal([]byte(output), &answers); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return answers
	}
	free, held := run(orders{}), run(orders{Filter: compileBuiltin(t, Minimal).sockFilters(t)})
	if len(free) != 7 {
		t.Fatalf("control: %v", free)
	}
	for name, errno := range free {
		if errno != 0 {
			t.Errorf("control: %s fails with %d without a filter", name, errno)
		}
		if held[name] != int(unix.EPERM) {
			t.Errorf("%s: errno %d, want EPERM", name, held[name])
		}
	}
}

// A program under minimal can become another one, which is under it, too.
func TestMinimalStaysOverExecve(t *testing.T) {
	t.Parallel()
	script := []string{"/bin/sh", "-c", "exec " + perl + " -e 'print fork() // $!'"}
	output, err := runChild(t, orders{Filter: compileBuiltin(t, Minimal).sockFilters(t), Exec: script})
	if err != nil || !strings.Contains(output, "not permitted") {
		t.Errorf("%v: %s", err, output)
	}
	if output, err := runChild(t, orders{Exec: script}); err != nil || strings.Contains(output, "not permitted") {
		t.Errorf("control: %v: %s", err, output)
	}
}
