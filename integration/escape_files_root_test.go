//go:build root

package integration

import (
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// openForWriting tries to open for writing every file of the kernel's file systems below its
// arguments, except those of processes, and to make a directory beside each. A file that a
// device covers is not counted.
const openForWriting = `
import os, stat, sys
for top in sys.argv[1:]:
    for where, folders, files in os.walk(top):
        folders[:] = [f for f in folders if not (where == "/proc" and (f.isdigit() or f in ("self", "thread-self")))
                      and not os.path.islink(where + "/" + f)]
        for name in files:
            path = where + "/" + name
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode): continue
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                print("writable", path)
            except OSError: pass
        if where.startswith("/sys/fs/cgroup"):
            try:
                os.mkdir(where + "/clove-escape"); os.rmdir(where + "/clove-escape")
                print("mkdir", where)
            except OSError: pass
`

// TestNoFileOfTheKernelIsWritable: the agent cannot raise a limit, make or leave a cgroup, or
// set a release agent or core pattern, on any kernel.
func TestNoFileOfTheKernelIsWritable(t *testing.T) {
	h := newHost(t)
	control, err := exec.Command("python3", "-c", openForWriting, "/proc/sys/kernel").Output()
	if err != nil || !strings.Contains(string(control), "writable /proc/sys/kernel/core_pattern") {
		t.Fatalf("control: %v, %.300s", err, control)
	}
	for _, flags := range [][]string{nil, {"--user=root"}, {"--user=root", "--read-only"}, {"--user=root", "--seccomp=unconfined"}} {
		r := h.agent(flags, "python3", "-c", openForWriting, "/proc", "/sys")
		if r.code != 0 || r.stdout != "" {
			t.Errorf("%v: exit %d\n%s%s", flags, r.code, r.stdout, r.stderr)
		}
	}
}

// fileSystemDoors are system calls that change a whole file system, or what no owner of a file
// may change. The last one shuts the file system down.
const fileSystemDoors = `
import fcntl, os, struct, sys
folder = sys.argv[1]
file = os.open(folder + "/doors", os.O_RDWR | os.O_CREAT, 0o600)
here = os.open(folder, os.O_RDONLY)
def door(name, call):
    try: call()
    except OSError: return
    print(name)
door("trusted attribute", lambda: os.setxattr(folder + "/doors", "trusted.overlay.opaque", b"y"))
door("immutable", lambda: (fcntl.ioctl(file, 0x40086602, struct.pack("l", 0x10)), fcntl.ioctl(file, 0x40086602, struct.pack("l", 0))))
door("freeze", lambda: (fcntl.ioctl(here, 0xc0045877, 0), fcntl.ioctl(here, 0xc0045878, 0)))
door("label", lambda: fcntl.ioctl(here, 0x41009432, bytes(256)))
door("shutdown", lambda: fcntl.ioctl(here, 0x8004587d, struct.pack("I", 2)))
`

// TestNoDoorToTheLayersFileSystem: the layer is ext4 below an overlay, and with --read-only
// the agent sees parts of it without an overlay. Control: the host's root on such a file
// system of its own.
func TestNoDoorToTheLayersFileSystem(t *testing.T) {
	h := newHost(t)
	const own = `cd "$1" && truncate -s 8M image && mke2fs -q -F -t ext4 image && mkdir mnt && mount -o loop image mnt && python3 -c "$0" mnt`
	control, err := exec.Command("unshare", "-m", "sh", "-c", own, fileSystemDoors, t.TempDir()).Output()
	if want := "trusted attribute\nimmutable\nfreeze\nlabel\nshutdown\n"; err != nil || string(control) != want {
		t.Fatalf("control: %v, %q", err, control)
	}
	for _, flags := range [][]string{nil, {"--user=root"}, {"--read-only"}, {"--read-only", "--user=root"}} {
		for _, folder := range []string{"/tmp", "/workspace", "/dev/shm"} {
			r := h.agent(flags, "python3", "-c", fileSystemDoors, folder)
			if r.code != 0 || r.stdout != "" {
				t.Errorf("%v: %s: exit %d, %q\n%s", flags, folder, r.code, r.stdout, r.stderr)
			}
		}
	}
}

// TestTheInitsProgramIsOutOfReach: through /proc/self/exe a container could once overwrite the
// runtime's binary on the host (CVE-2019-5736).
func TestTheInitsProgramIsOutOfReach(t *testing.T) {
	h := newHost(t)
	const ways = `for p in /proc/1/exe /proc/1/root/etc/passwd /proc/1/cwd/etc/passwd /proc/1/fd/3 /proc/1/map_files /proc/1/environ; do
	head -c 1 $p >/dev/null 2>&1 && echo read $p; readlink $p && echo link $p; done
	sh -c 'exec 3>>/proc/1/exe' 2>/dev/null && echo write; true`
	control := strings.ReplaceAll(ways, "/proc/1/", "/proc/$$/")
	if out, err := exec.Command("sh", "-c", control).Output(); err != nil || !strings.Contains(string(out), "read /proc/") || !strings.Contains(string(out), "/exe\n") {
		t.Fatalf("control: %v, %q", err, out)
	}
	for _, flags := range [][]string{nil, {"--user=root"}} {
		h.sh(ways, flags...).want(t, agent.StatusExited, 0, "")
		// clove-init's second stage looks up and executes the command; at that moment this
		// path is its own program.
		r := h.agent(flags, "/proc/self/exe")
		if r.code == 0 || r.stdout != "" {
			t.Errorf("%v: clove-init ran for the agent: %q", flags, r.stdout)
		}
	}
}
