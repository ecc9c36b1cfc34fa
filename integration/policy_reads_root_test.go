//go:build root

package integration

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/landlock"
)

// needsLandlock skips a test on a kernel without it.
func needsLandlock(t *testing.T) {
	t.Helper()
	if _, err := landlock.Version(); err != nil {
		t.Skip(err)
	}
}

const readEntries = `
- {read: /usr/bin/env, is: allow}
- {exec: /usr/bin/env, is: allow}
- {read: /etc/shadow, is: deny}
- {read: /etc/passwd, is: deny}
- {read: /opt, is: deny}
- {read: /tmp, is: allow}
- {write: /tmp/x, is: allow}
- {read: /dev/null, is: allow}
- {read: /proc/self/status, is: allow}
`

// A list of what may be read is in a sandbox as it is decided. The control is the same document
// without the list.
func TestPolicyTestOfReads(t *testing.T) {
	needsLandlock(t)
	h := newHost(t)
	const list = "version: 1\nname: own\nextends: standard\nfiles: {root: read-only%}\n"
	decided, live := h.tested(strings.ReplaceAll(list, "%", ", read: [/usr]"), readEntries)
	n := strings.Count(readEntries, "- {")
	allOK(t, "decided", decided, n)
	allOK(t, "live", live, n)
	decided, live = h.tested(strings.ReplaceAll(list, "%", ", read: [/etc]"), "- {exec: /usr/bin/env, is: deny}\n- {read: /etc/passwd, is: allow}\n")
	allOK(t, "decided, without programs", decided, 2)
	allOK(t, "live, without programs", live, 2)
	decided, live = h.tested(strings.ReplaceAll(list, "%", ""), "- {read: /etc/passwd, is: allow}\n- {read: /opt, is: allow}\n")
	allOK(t, "decided control", decided, 2)
	allOK(t, "live control", live, 2)
}

// TestARunRefusesReadsThatItCannotHold: exit status 125, one error with a hint, and no run.
func TestARunRefusesReadsThatItCannotHold(t *testing.T) {
	needsLandlock(t)
	h := newHost(t)
	dir := t.TempDir()
	mounts := filepath.Join(dir, "mounts.json")
	for _, err := range []error{os.Symlink("../etc", filepath.Join(dir, "link")), os.WriteFile(mounts, []byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]}`), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--seccomp=unconfined", "--allow-read=/usr"}, "needs a filter"},
		{[]string{"--seccomp=" + mounts, "--allow-read=/usr"}, "the filter lets the agent mount"},
		{[]string{"--allow-read=/usr", "--allow-read=/nosuch"}, "/nosuch: it does not exist inside"},
		{[]string{"--allow-read=/etc"}, "it is the agent's program, and is not in the list"},
		{[]string{"--allow-read=/usr/bin"}, "needs it, and is not in the list"},
		{[]string{"--allow-read=/usr", "--workspace=" + dir, "--allow-read=/workspace/link"}, "a link leads from there"},
		{[]string{"--allow-read=/usr", "-v=" + dir + ":/data", "--allow-read=/data/mounts.json"}, "could put something else there"},
		{[]string{"--allow-read=/usr/bin/*"}, "is a pattern"},
		{[]string{"--read-only", "--allow-exec=/bin/sh", "--allow-exec=/usr/lib/apt/methods", "--allow-read=/usr/bin", "--allow-read=/usr/lib/x86_64-linux-gnu", "--allow-read=/usr/lib64"}, "it belongs to the list of programs"},
	} {
		r := h.clove(append(append([]string{"run"}, row.flags...), "--", "/bin/sh", "-c", "true")...)
		if r.code != 125 || !strings.Contains(r.stderr, row.want) || !strings.Contains(r.stderr, "hint: ") {
			t.Errorf("%q: %d, %s", row.flags, r.code, r.stderr)
		}
	}
	if r := h.clove("run", "--rm", "--allow-read=/usr", "-v="+dir+":/data", "--allow-read=/data", "--", "/bin/sh", "-c", "cat </data/mounts.json >/dev/null"); r.code != 0 {
		t.Errorf("control: %d, %s", r.code, r.stderr)
	}
	if r := h.clove("ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("runs are left: %s", r.stdout)
	}
}

// TestRefusedReadsAreSeen: a refused file or program is in the record, on stderr once and in why.
// A refusal by the mode, and a file that does not exist, is no denial. The control is the same
// with all of it in the list.
func TestRefusedReadsAreSeen(t *testing.T) {
	needsLandlock(t)
	h := newHost(t)
	const script = `for n in 1 2; do cat /etc/passwd >/dev/null; done; ls /opt >/dev/null; cat /etc/nosuch /etc/shadow; /opt/tool; echo $? >/tmp/x; cat /tmp/x`
	flags := []string{"--rootfs=" + readRoot(t), "--allow-read=/bin", "--name"}
	r := h.kept(append(flags, "listed"), "/bin/sh", "-c", script)
	r.want(t, agent.StatusExited, 0, "126\n")
	for target, want := range map[string]agent.Denial{
		"/etc/passwd": {Kind: agent.DenialFile, Count: 2}, "/opt": {Kind: agent.DenialFile, Count: 1}, "/opt/tool": {Kind: agent.DenialExec, Count: 1},
	} {
		d := denialOf(r.record, want.Kind, target)
		if d == nil || d.Count != want.Count || d.Rule != agent.RuleRead || d.Errno != "EACCES" || d.Call == nil || !strings.Contains(d.Program, "/bin/") {
			t.Errorf("%s: %+v", target, d)
		}
	}
	if len(r.record.Denials) != 3 || strings.Count(r.stderr, "file: refused /etc/passwd by ") != 1 {
		t.Errorf("%+v\n%s", r.record.Denials, r.stderr)
	}
	if why := h.clove("why", "listed"); !strings.Contains(why.stdout, "refused: file /etc/passwd, by files.read (2 times)\n  flag: --allow-read /etc/passwd\n") {
		t.Errorf("why: %s", why.stdout)
	}
	free := h.kept(append([]string{"--allow-read=/etc", "--allow-read=/opt"}, append(flags, "free")...), "/bin/sh", "-c", script)
	if free.want(t, agent.StatusExited, 0, "0\n"); len(free.record.Denials) != 0 {
		t.Errorf("control: %+v", free.record.Denials)
	}
}

// readRoot is a root with a shell, and little that a program opens by itself.
func readRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shell, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Skip(err)
	}
	for name, text := range map[string][]byte{"bin/busybox": shell, "etc/passwd": []byte("x"), "opt/tool": []byte("#!/bin/sh\n")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sh", "cat", "ls"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// withoutLandlock starts a command on a kernel that seems to lack Landlock: its calls answer
// ENOSYS.
func withoutLandlock(start func() error) error {
	const number, first, last = 0, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_RESTRICT_SELF
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: first, Jf: 2},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: last, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with its filter
		loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&loaded)), 0, 0)
		if err == nil {
			err = start()
		}
		done <- err
	}()
	return <-done
}

// TestWhatOnlyLandlockHoldsIsRefusedWithoutIt: a run with files.landlock: required, and one with a
// list of what may be read, do not start on a kernel without Landlock, and leave nothing. The
// controls are the same runs with Landlock, and a run that asks for neither, without it.
func TestWhatOnlyLandlockHoldsIsRefusedWithoutIt(t *testing.T) {
	needsLandlock(t)
	h := newHost(t)
	policy := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\nname: own\nextends: standard\nfiles: {landlock: required}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		flags     []string
		refused   string
		mechanism string
	}{
		{nil, "", agent.ControlLandlock},
		{[]string{"--policy=" + policy}, "this host cannot enforce landlock", agent.ControlLandlock},
		{[]string{"--allow-read=/usr"}, "this host cannot enforce read", agent.ControlRead},
	} {
		h.inside = nil
		with := h.agent(row.flags, "/bin/true")
		if with.want(t, agent.StatusExited, 0, ""); with.record.Enforced[row.mechanism] == "" {
			t.Errorf("control: %q: %v", row.flags, with.record.Enforced)
		}
		h.inside = withoutLandlock
		if row.refused == "" {
			without := h.agent(row.flags, "/bin/true")
			if without.want(t, agent.StatusExited, 0, ""); without.record.Enforced[row.mechanism] != "" {
				t.Errorf("a kernel without Landlock: %v", without.record.Enforced)
			}
			continue
		}
		r := h.clove(append(append([]string{"run"}, row.flags...), "--", "/bin/true")...)
		if r.code != 125 || !strings.Contains(r.stderr, row.refused) || strings.Count(r.stderr, "hint: ") != 1 {
			t.Errorf("%q: %d, %s", row.flags, r.code, r.stderr)
		}
	}
	h.inside = nil
	if r := h.clove("ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("runs are left: %s", r.stdout)
	}
}
