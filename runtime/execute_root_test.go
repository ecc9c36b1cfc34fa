//go:build root

package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// waysToExecute are ways to the code of a program that a list leaves out, id(1). Each prints
// its name, and "done" or the error. python3 is the agent, and is in the list.
const waysToExecute = `
import ctypes, ctypes.util, mmap, os, shutil, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
ID = "/usr/bin/id"
def way(name, do):
    try:
        do()
        print(name + ": done", flush=True)
    except OSError as e:
        print(name + ": " + (os.strerror(e.errno) if e.errno else "mapping refused"), flush=True)
def run(*argv, **more):
    p = subprocess.run(argv, capture_output=True, text=True, **more)
    if p.returncode == 0: return
    raise OSError(0 if "failed to map segment" in p.stderr else 14, p.stderr)
def copy(to, of=ID):
    shutil.copy(of, to); os.chmod(to, 0o755); return to
def library():
    return next(l.split()[-1] for l in open("/proc/self/maps") if "libz.so" in l or "libexpat.so" in l)
def loader():
    return next(l.split()[-1] for l in open("/proc/self/maps") if "/ld-linux" in l or "/ld-" in l)
def script():
    with open("/workspace/script", "w") as f: f.write("#!/usr/bin/python3\n")
    os.chmod("/workspace/script", 0o755); run("/workspace/script")
def descriptor(path):
    fd = os.open(path, os.O_RDONLY); run("/proc/self/fd/%d" % fd, pass_fds=[fd])
def memory():
    fd = libc.memfd_create(b"x", 0)
    if fd < 0: raise OSError(ctypes.get_errno(), "")
    os.write(fd, open(ID, "rb").read()); run("/proc/self/fd/%d" % fd, pass_fds=[fd])
def mapped(path):
    with open(path, "rb") as f: mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
def protected(path):
    with open(path, "rb") as f:
        libc.mmap.restype = ctypes.c_void_p
        at = libc.mmap(None, 4096, 1, 2, f.fileno(), 0)
        if libc.mprotect(ctypes.c_void_p(at), 4096, 5) != 0: raise OSError(ctypes.get_errno(), "")
for place in ("/workspace", "/tmp", "/var/tmp", "/home/agent"):
    way("copy in " + place, lambda: run(copy(place + "/id")))
way("itself", lambda: run(ID))
way("symbolic link", lambda: (os.symlink(ID, "/tmp/symbolic"), run("/tmp/symbolic")))
way("another root", lambda: run("/proc/self/root" + ID))
way("descriptor", lambda: descriptor(ID))
way("descriptor of a copy", lambda: descriptor("/tmp/id"))
way("loader", lambda: run(loader(), ID))
way("loader and a copy", lambda: run(loader(), "/tmp/id"))
way("copy of the loader", lambda: run(copy("/tmp/loader", loader()), ID))
way("script", script)
way("memory file", memory)
way("library", lambda: ctypes.CDLL(copy("/workspace/lib.so", library())))
way("mapping", lambda: mapped("/tmp/id"))
way("mapping of itself", lambda: mapped(ID))
way("later protection", lambda: protected("/tmp/id"))
way("preload", lambda: run("/usr/bin/python3", "-c", "import sys; sys.exit(not any('pre.so' in l and 'r-x' in l for l in open('/proc/self/maps')))", env={"LD_PRELOAD": copy("/tmp/pre.so", library())}))
print("end", flush=True)
`

// executes is a change of a spec: Python is the agent, in a root with a list of programs.
func executes(user agent.User, list ...string) func(*agent.Spec) {
	return func(s *agent.Spec) {
		s.User, s.Files.ReadOnly, s.Files.Execute = user, true, list
		s.Command = []string{"/usr/bin/python3", "-c", waysToExecute}
	}
}

// TestNoWayToAProgramThatIsNotInTheList: the control is a read-only root without a list, in
// which each way leads to the program. With a list none does, neither for the agent nor for
// root inside.
func TestNoWayToAProgramThatIsNotInTheList(t *testing.T) {
	for _, user := range []agent.User{policies.AgentUser, policies.RootUser} {
		for _, list := range [][]string{nil, {"/usr/bin/python3"}} {
			a := startLive(t, "", executes(user, list...))
			ways := 0
			for line := a.line(); line != "end"; line = a.line() {
				ways++
				if done := strings.HasSuffix(line, ": done"); done != (list == nil) {
					t.Errorf("%s, %q: %s", user.Name, list, line)
				}
			}
			if want := strings.Count(waysToExecute, "way(") - 2 + 4; ways != want { // one is the definition, one has four places
				t.Errorf("%s, %q: %d ways, want %d", user.Name, list, ways, want)
			}
			if record := a.ends(); list != nil && record.Enforced[agent.ControlExecute] != "mounts" {
				t.Errorf("enforced: %v", record.Enforced)
			}
		}
	}
}

// stillWorks is what a list must not break: threads, modules with libraries of their own, code
// that is made in memory, and programs of the list by all their names.
const stillWorks = `
import ctypes, decimal, hashlib, mmap, os, sqlite3, ssl, subprocess, threading
t = threading.Thread(target=lambda: hashlib.sha256(b"x").hexdigest()); t.start(); t.join()
sqlite3.connect(":memory:").execute("select 1"); decimal.Decimal(1) / 3
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x2a\x00\x00\x00\xc3")
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
os.symlink("/usr/bin/env", "/tmp/env")
print(subprocess.run(["/tmp/env", "sh", "-c", "echo shell"], capture_output=True, text=True).stdout, end="")
`

func TestAListBreaksNothingElse(t *testing.T) {
	a := startLive(t, "", func(s *agent.Spec) {
		executes(policies.AgentUser, "/usr/bin/python3", "/bin/sh", "/usr/bin/env")(s)
		s.Command[2] = stillWorks
	})
	if got := a.saysAll(); got != "42\nshell\n" {
		t.Errorf("%q", got)
	}
}

// TestExecMeetsTheSameList: a session is refused what the agent is refused.
func TestExecMeetsTheSameList(t *testing.T) {
	a := startLive(t, "echo ready; exec sleep 1000", func(s *agent.Spec) {
		s.Files.ReadOnly, s.Files.Execute = true, []string{"/bin/sh", "/usr/bin/sleep", "/usr/bin/env"}
	})
	a.line()
	if r := a.exec(agent.Exec{Command: []string{"/usr/bin/env"}}, ""); r.err != nil || r.code != 0 {
		t.Errorf("control: %v, %+v", r.err, r)
	}
	r := a.exec(agent.Exec{Command: []string{"/usr/bin/id"}}, "")
	if r.code != 126 || !strings.Contains(agent.FailureOf(r.err).Hint, "a list of programs") || strings.Contains(r.stdout, "uid=") {
		t.Errorf("%v, %+v", r.err, r)
	}
}

// TestFoldersAndPatternsOfAList: in a folder everything is executed, and beside it nothing. A
// read-only volume may be named, too.
func TestFoldersAndPatternsOfAList(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "clove-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"in/tool", "in/deep/tool", "out/tool", "one-tool", "two-tool"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := "for p in in/tool in/deep/tool out/tool one-tool two-tool; do /tools/$p 2>/dev/null || echo no $p; done"
	all := []string{"in/tool", "in/deep/tool", "out/tool", "one-tool", "two-tool"}
	for _, row := range []struct{ list, want []string }{
		{nil, all},
		{[]string{"/bin/sh", "/tools/in", "/tools/one-*"}, []string{"in/tool", "in/deep/tool", "no out/tool", "one-tool", "no two-tool"}},
		{[]string{"/bin/sh", "/tools"}, all},
	} {
		a := startLive(t, script, func(s *agent.Spec) {
			s.Files.ReadOnly, s.Files.Execute, s.Files.Binds = true, row.list, []agent.Bind{{Source: dir, Target: "/tools", ReadOnly: true}}
		})
		if got := strings.Split(strings.TrimSpace(a.saysAll()), "\n"); !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q", row.list, got, row.want)
		}
		a.ends()
	}
}

// executableMounts prints each mount without noexec that is neither a device nor an empty
// file system.
const executableMounts = `
import os, stat
for line in open("/proc/self/mountinfo"):
    head, tail = line.split(" - ")
    at, options = head.split()[4:6]
    if "noexec" in options.split(","): continue
    s = os.stat(at)
    if stat.S_ISCHR(s.st_mode) or tail.startswith("tmpfs ") and "ro" in options.split(",") and not os.listdir(at): continue
    print(at, options.split(",")[0])
print("end", flush=True)
`

// TestNothingElseIsMountedForExecution: only files and folders of the list are, read-only, also
// of what libcontainer mounts and of requested mounts. The control is a run without a list, whose
// root is executable.
func TestNothingElseIsMountedForExecution(t *testing.T) {
	for _, list := range [][]string{nil, {"/usr/bin/python3"}} {
		a := startLive(t, "", func(s *agent.Spec) {
			executes(policies.RootUser, list...)(s)
			s.Command[2], s.Terminal = executableMounts, false
			s.Files.Tmpfs = []agent.Tmpfs{{Target: "/cache", SizeBytes: 1 << 20}}
			s.Files.Binds = []agent.Bind{{Source: t.TempDir(), Target: "/shared"}}
		})
		found := map[string]string{}
		for line := a.line(); line != "end"; line = a.line() {
			at, options, _ := strings.Cut(line, " ")
			found[at] = options
			if list != nil && (options != "ro" || !strings.HasPrefix(at, "/usr/")) {
				t.Errorf("%s", line)
			}
		}
		if rootIs := found["/"]; (rootIs != "") != (list == nil) || len(found) < 5 {
			t.Errorf("%q: %v", list, found)
		}
		a.ends()
	}
}
