//go:build root

package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// waysToRead are ways to the text of a file that a list leaves out. Each prints its name, and
// "done" or the error. /workspace/open and /volume/open are in the list.
const waysToRead = `
import array, ctypes, mmap, os, shutil, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
SECRET, PROGRAM = "/workspace/closed/secret", "/workspace/closed/program"
def way(name, do):
    try:
        text = do()
        print(name + ": " + ("done" if text and "secret" in text else "read nothing"), flush=True)
    except OSError as e:
        print(name + ": " + os.strerror(e.errno), flush=True)
def read(at, flags=os.O_RDONLY, **more):
    fd = os.open(at, flags, **more)
    try: return os.read(fd, 100).decode()
    finally: os.close(fd)
def then(*steps):
    for step in steps[:-1]: step()
    return read(steps[-1])
def check(failed):
    if failed < 0: raise OSError(ctypes.get_errno(), "")
def path_only(at):
    fd = os.open(at, os.O_PATH); return read("/proc/self/fd/%d" % fd)
def beneath(dir):
    fd = os.open(dir, os.O_PATH | os.O_DIRECTORY); return read("secret", dir_fd=fd)
def passed(at):
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [os.open(at, os.O_PATH)])
    return read("/proc/self/fd/%d" % socket.recv_fds(b, 1, 1)[1][0])
def mapped():
    with open(SECRET, "r+b") as f: return mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)[:].decode()
def exchange(a, b):
    open(b, "a").close()
    at = ctypes.c_int(-100)
    check(libc.renameat2(at, a.encode(), at, b.encode(), 2)); return read(b)
def run(*argv):
    p = subprocess.run(argv, capture_output=True, text=True)
    return p.stdout
def restored(do):
    try: return do()
    finally:
        for at in ("/workspace/open/moved", "/workspace/open/dir/secret"):
            if os.path.exists(at): os.rename(at, SECRET)
way("itself", lambda: read(SECRET))
way("to write, too", lambda: read(SECRET, os.O_RDWR))
way("symbolic link", lambda: then(lambda: os.symlink(SECRET, "/tmp/symbolic"), "/tmp/symbolic"))
way("link in a folder of the list", lambda: then(lambda: os.symlink(SECRET, "/workspace/open/symbolic"), "/workspace/open/symbolic"))
way("another root", lambda: read("/proc/self/root" + SECRET))
way("working directory", lambda: (os.chdir("/workspace/closed"), read("secret"))[1])
way("its link in /proc", lambda: read("/proc/self/cwd/secret"))
way("dots", lambda: read("/workspace/open/../closed/secret"))
way("descriptor of a path", lambda: path_only(SECRET))
way("descriptor of a folder", lambda: beneath("/workspace/closed"))
way("descriptor that was passed", lambda: passed(SECRET))
way("mapping", mapped)
way("names of the folder", lambda: " ".join(os.listdir("/workspace/closed")))
way("program", lambda: run(PROGRAM))
way("its interpreter", lambda: run("/bin/sh", PROGRAM))
way("another process", lambda: run("/usr/bin/cat", SECRET))
way("copy", lambda: (shutil.copy(SECRET, "/tmp/copy"), read("/tmp/copy"))[1])
way("copy in the kernel", lambda: (run("/usr/bin/cp", "--reflink=auto", SECRET, "/tmp/copied"), read("/tmp/copied"))[1])
way("new name in its folder", lambda: then(lambda: os.rename(SECRET, SECRET + "2"), lambda: os.rename(SECRET + "2", SECRET), SECRET))
way("hard link beside it", lambda: then(lambda: os.link(SECRET, "/workspace/closed/hard"), "/workspace/closed/hard"))
way("hard link", lambda: then(lambda: os.link(SECRET, "/workspace/open/hard"), "/workspace/open/hard"))
way("move", lambda: restored(lambda: then(lambda: os.rename(SECRET, "/workspace/open/moved"), "/workspace/open/moved")))
way("move of its folder", lambda: restored(lambda: then(lambda: os.makedirs("/workspace/closed/dir", exist_ok=True), lambda: os.rename(SECRET, "/workspace/closed/dir/secret"),
    lambda: os.rename("/workspace/closed/dir", "/workspace/open/dir"), "/workspace/open/dir/secret")))
way("volume", lambda: read("/volume/closed/secret"))
way("the same at another place", lambda: read("/alias/secret"))
way("writable volume", lambda: read("/writable/secret"))
if os.path.exists("/workspace/closed/dir/secret"): os.rename("/workspace/closed/dir/secret", SECRET)
way("exchange", lambda: exchange(SECRET, "/workspace/open/other"))
print("end", flush=True)
`

// guarded is a spec with a workspace and volumes that have secrets, and things to read.
func guarded(t *testing.T, list []string, script string) func(*agent.Spec) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "clove-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"workspace/open/free": "free", "workspace/closed/secret": "a secret", "workspace/closed/program": "#!/bin/sh\necho a secret\n",
		"volume/open/free": "free", "volume/closed/secret": "a secret", "writable/secret": "a secret",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return func(s *agent.Spec) {
		s.Command, s.Files.Read, s.Files.Workspace = []string{"/usr/bin/python3", "-c", script}, list, filepath.Join(dir, "workspace")
		s.Files.Binds = []agent.Bind{
			{Source: filepath.Join(dir, "volume"), Target: "/volume", ReadOnly: true},
			{Source: filepath.Join(dir, "volume/closed"), Target: "/alias", ReadOnly: true},
			{Source: filepath.Join(dir, "writable"), Target: "/writable"},
		}
	}
}

// readList has what python3 and a shell need, and a folder of the workspace and of a volume each.
var readList = []string{"/usr", "/workspace/open", "/volume/open"}

// TestNoWayToReadWhatIsNotInTheList: the control is a run without a list, in which each way leads
// to the text. With a list none does, neither for the agent nor for root inside.
func TestNoWayToReadWhatIsNotInTheList(t *testing.T) {
	needsLandlock(t)
	for _, user := range []agent.User{policies.AgentUser, policies.RootUser} {
		for _, list := range [][]string{nil, readList} {
			change := guarded(t, list, waysToRead)
			a := startLive(t, "", func(s *agent.Spec) { change(s); s.User = user })
			ways := 0
			for line := a.line(); line != "end"; line = a.line() {
				ways++
				if done := strings.HasSuffix(line, ": done"); done != (list == nil) {
					t.Errorf("%s, %q: %s", user.Name, list, line)
				}
			}
			if want := strings.Count(waysToRead, "\nway("); ways != want {
				t.Errorf("%s, %q: %d ways, want %d", user.Name, list, ways, want)
			}
			if record := a.ends(); list != nil && record.Enforced[agent.ControlRead] != "landlock" {
				t.Errorf("enforced: %v", record.Enforced)
			}
		}
	}
}

// stillReads is what a list must not break: what it has, places of the agent's own, names and
// facts of other files, and writing where nothing is read.
const stillReads = `
import os, subprocess
def own(dir):
    at = dir + "/made"
    with open(at, "w") as f: f.write("x")
    return open(at).read()
print(open("/workspace/open/free").read(), open("/volume/open/free").read(), *[own(d) for d in ("/tmp", "/var/tmp", "/home/agent", "/dev/shm", "/cache")])
print(os.stat("/workspace/closed/secret").st_size, os.path.exists("/etc/passwd"), os.readlink("/proc/self/cwd"), len(open("/proc/self/status").read()) > 9)
open("/workspace/closed/written", "w").write("x"); os.rename("/workspace/closed/written", "/workspace/closed/renamed"); os.unlink("/workspace/closed/renamed")
os.rename("/workspace/open/free", "/workspace/open/freed"); print(open("/workspace/open/freed").read())
print(subprocess.run(["/bin/sh", "-c", "echo shell >/dev/stdout; cat </dev/null"], capture_output=True, text=True).stdout, end="")
`

func TestAListOfReadsBreaksNothingElse(t *testing.T) {
	needsLandlock(t)
	change := guarded(t, readList, stillReads)
	a := startLive(t, "", func(s *agent.Spec) {
		change(s)
		s.Files.Tmpfs = []agent.Tmpfs{{Target: "/cache", SizeBytes: 1 << 20}}
	})
	if got := a.saysAll(); got != "free free x x x x x\n8 True /workspace True\nfree\nshell\n" {
		t.Errorf("%q", got)
	}
}

// TestExecMeetsTheSameReads: a session is refused what the agent is refused, a program that it may
// not read too. The control is what it may.
func TestExecMeetsTheSameReads(t *testing.T) {
	needsLandlock(t)
	change := guarded(t, readList, "import time; print('ready', flush=True); time.sleep(1000)")
	a := startLive(t, "", change)
	a.line()
	if r := a.exec(agent.Exec{Command: []string{"cat", "/workspace/open/free"}}, ""); r.err != nil || r.stdout != "free" {
		t.Errorf("control: %v, %+v", r.err, r)
	}
	if r := a.exec(agent.Exec{Command: []string{"cat", "/workspace/closed/secret"}}, ""); r.code != 1 || r.stdout != "" {
		t.Errorf("%v, %+v", r.err, r)
	}
	r := a.exec(agent.Exec{Command: []string{"/workspace/closed/program"}}, "")
	if r.code != 126 || !strings.Contains(agent.FailureOf(r.err).Hint, "files.read") || strings.Contains(r.stdout, "secret") {
		t.Errorf("%v, %+v", r.err, r)
	}
}
