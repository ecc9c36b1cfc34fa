//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/models/link"
)

// proc is what the kernel shows of a process.
type proc string

func procOf(pid int) proc { return proc(filepath.Join("/proc", strconv.Itoa(pid))) }

func (p proc) text(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(p), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are those of a folder.
func (p proc) names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(string(p), dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// fields returns lines NAME: VALUE of a status of all threads, each different value once.
func (p proc) fields(t *testing.T, names ...string) string {
	t.Helper()
	var values []string
	for _, thread := range p.names(t, "task") {
		for line := range strings.Lines(p.text(t, "task/"+thread+"/status")) {
			name, value, _ := strings.Cut(line, ":")
			value = strings.Join(strings.Fields(value), " ")
			if slices.Contains(names, name) && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return strings.Join(values, " ")
}

// shared are the kinds of namespaces in which p and the test are both.
func (p proc) shared(t *testing.T) (kinds []string) {
	t.Helper()
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		if its, err := os.Readlink(filepath.Join(string(p), "ns", kind)); err != nil || its == own {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// foreign are descriptors that neither a channel nor Go's poller needs.
func (p proc) foreign(t *testing.T) (targets []string) {
	t.Helper()
	for _, name := range p.names(t, "fd") {
		target, err := os.Readlink(filepath.Join(string(p), "fd", name)) // it may be closed by now
		kind, _, _ := strings.Cut(target, ":")
		if err == nil && kind != "socket" && kind != "anon_inode" && kind != "pipe" && target != "/dev/null" {
			targets = append(targets, target)
		}
	}
	return targets
}

// limit is a soft and a hard limit of resources.
func (p proc) limit(t *testing.T, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(p.text(t, "limits"), name)
	return strings.Join(strings.Fields(rest)[:2], " ")
}

const noCapability = "0000000000000000"

// rights is what the kernel shows of a process without rights, and the way to see it.
var rights = []struct {
	name string
	want string
	read func(t *testing.T, p proc) string
}{
	{"capabilities", noCapability, func(t *testing.T, p proc) string {
		return p.fields(t, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
	}},
	{"seccomp and its filters", "2", func(t *testing.T, p proc) string { return p.fields(t, "Seccomp", "Seccomp_filters") }},
	{"no_new_privs", "1", func(t *testing.T, p proc) string { return p.fields(t, "NoNewPrivs") }},
	{"groups", "", func(t *testing.T, p proc) string { return p.fields(t, "Groups") }},
	{"namespaces of the host", "[]", func(t *testing.T, p proc) string { return fmt.Sprint(p.shared(t)) }},
	{"root", "[]", func(t *testing.T, p proc) string { return fmt.Sprint(p.names(t, "root")) }},
	{"mounts", "1 [/ tmpfs ro]", func(t *testing.T, p proc) string {
		mounts := strings.Fields(strings.ReplaceAll(p.text(t, "mounts"), ",", " "))
		return fmt.Sprint(strings.Count(p.text(t, "mounts"), "\n"), mounts[1:min(4, len(mounts))])
	}},
	{"core dumps", "0 0", func(t *testing.T, p proc) string { return p.limit(t, "Max core file size") }},
	{"files", "0 0", func(t *testing.T, p proc) string { return p.limit(t, "Max file size") }},
	{"processes", "64 64", func(t *testing.T, p proc) string { return p.limit(t, "Max processes") }},
	{"environment", "", func(t *testing.T, p proc) string { return p.text(t, "environ") }},
	{"other descriptors", "[]", func(t *testing.T, p proc) string { return fmt.Sprint(p.foreign(t)) }},
	// Of a process that is not dumpable, root has the files in /proc (prctl(2)).
	{"owner in /proc", "0", func(t *testing.T, p proc) string {
		var stat unix.Stat_t
		if err := unix.Stat(filepath.Join(string(p), "environ"), &stat); err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(int(stat.Uid))
	}},
}

// unconfined is a process of the user nobody, which only gave up root.
func unconfined(t *testing.T) proc {
	t.Helper()
	leak, err := os.Open(inherited)
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"A=b"}, leak
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{65534}}, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return procOf(cmd.Process.Pid)
}

// journalOf is the path of a process's journal, which names it.
func journalOf(t *testing.T, d *cloved, pid int) (paths []string) {
	t.Helper()
	for _, name := range journalsOf(t, d) {
		path := filepath.Join(d.run, "models", name)
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), fmt.Sprintf(`{"pid":%d,`, pid)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// The processes that read the bytes of agents and providers, or have the keys, have no rights, as
// the kernel shows. The control: the same readings of an unconfined process of the user nobody differ.
func TestProcessesOfModelsHaveNoRights(t *testing.T) {
	d := newCloved(t)
	r := d.start([]string{"--network=none", "--model=echo"}, modelAgent(fmt.Sprintf(askChat, "echo"), "import sys", "sys.stdout.flush()", "sys.stdin.read()")...)
	if line := r.line(); !strings.HasPrefix(line, "200 ") {
		t.Fatalf("%s\n%s", line, &r.stderr)
	}
	control := unconfined(t)
	for _, right := range rights {
		if got := right.read(t, control); got == right.want {
			t.Errorf("control: %s: %q", right.name, got)
		}
	}
	users := map[string]bool{}
	for program, processes := range map[string]int{"clove-models": 2, "clove-upstream": 1} { // one clove-models is the provider echo
		pids := childrenNamed(t, d.cmd.Process.Pid, program)
		if len(pids) != processes {
			t.Fatalf("%s: %v", program, pids)
		}
		for _, pid := range pids {
			p := procOf(pid)
			for _, right := range rights {
				want := right.want
				switch { // a journal is what they have beside
				case right.name == "other descriptors":
					want = fmt.Sprint(journalOf(t, d, pid))
				case right.name == "files" && program == "clove-upstream":
					want = fmt.Sprintf("%d %[1]d", link.JournalBytes)
				}
				if got := right.read(t, p); got != want {
					t.Errorf("%s: %s: %q, want %q", program, right.name, got, want)
				}
			}
			uid := strings.Fields(p.fields(t, "Uid", "Gid"))
			if len(slices.Compact(uid)) != 1 || uid[0] == "0" || users[uid[0]] {
				t.Errorf("%s: its ids are %v, besides %v", program, uid, users)
			}
			users[uid[0]] = true
			// The standard streams, the poller, the channel, a listener or connection, and a stream
			// that may not be closed yet.
			if fds := p.names(t, "fd"); len(fds) > 8 {
				t.Errorf("%s has %d descriptors", program, len(fds))
			}
		}
	}
	if end := r.wait(); end.code != 0 {
		t.Errorf("exit %d, %s", end.code, end.stderr)
	}
}
