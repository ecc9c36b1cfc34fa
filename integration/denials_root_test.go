//go:build root

package integration

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// denialOf is a record's denial of one kind and target.
func denialOf(r agent.Record, kind, target string) *agent.Denial {
	for _, d := range r.Denials {
		if d.Kind == kind && d.Target == target {
			return &d
		}
	}
	return nil
}

// kept runs an agent that is not forgotten at its end, and reads its record.
func (h *host) kept(flags []string, command ...string) result {
	h.t.Helper()
	file := h.recordFile()
	r := h.clove(append(append(append([]string{"run", "--result", file}, flags...), "--"), command...)...)
	r.record = readRecord(h.t, file)
	return r
}

// TestRefusedCallsAreSeen: a call that the filter refuses gets its errno, and is in the record
// with its arguments and program, on stderr once, in why and in the events. The control is a
// call that the filter lets pass, and a run without a filter.
func TestRefusedCallsAreSeen(t *testing.T) {
	h := newHost(t)
	attempts := `for (1..3) { $r = syscall(165, 0, 0, 0, 0, 77); print "mount $r ", $!+0, "\n" } print "getpid ", syscall(39) > 0, "\n"; print "clone3 ", syscall(435), " ", $!+0, "\n";`
	command := []string{"/usr/bin/perl", "-e", attempts}
	r := h.kept([]string{"--name=seen"}, command...)
	if r.code != 0 || strings.Count(r.stdout, "mount -1 1\n") != 3 || !strings.Contains(r.stdout, "getpid 1\nclone3 -1 38\n") {
		t.Fatalf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	d := denialOf(r.record, agent.DenialCall, "mount")
	if d == nil || d.Count != 3 || d.Rule != "seccomp standard: mounts" || d.Errno != "EPERM" || d.Call == nil || d.Call.Number != 165 || d.Call.Args[4] != "0x4d" || !strings.Contains(d.Program, "perl") {
		t.Errorf("%+v", d)
	}
	if len(r.record.Denials) != 1 {
		t.Errorf("also: %+v", r.record.Denials)
	}
	if strings.Count(r.stderr, "system call: refused mount by /usr/bin/perl") != 1 {
		t.Errorf("stderr: %s", r.stderr)
	}
	why := h.clove("why", "seen")
	if !strings.Contains(why.stdout, "refused: syscall mount, by seccomp standard: mounts (3 times)") || !strings.Contains(why.stdout, "flag: --seccomp unconfined") {
		t.Errorf("why: %s", why.stdout)
	}
	if free := h.agent([]string{"--seccomp=unconfined"}, command...); len(free.record.Denials) != 0 || strings.Contains(free.stderr, "system call") {
		t.Errorf("control: %+v\n%s", free.record.Denials, free.stderr)
	}
}

// TestRefusedFilesAreSeen: writes to what is read-only for the run, a program on a mount that
// has none, and a missing capability. The control is the same on writable places, and what a
// program does harmlessly all the time.
func TestRefusedFilesAreSeen(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "there"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	script := `
		echo x >/tmp/new; mkdir -p /tmp/a/b /etc; cat /etc/passwd >/dev/null; : </ro/there; chown $(id -u) /tmp/new; rm -f /tmp/new; test -w /ro/there
		cd /ro; echo x >new; mkdir sub; rm there; mv there other; ln -s a link; chmod 600 there; touch there
		cp /bin/true /dev/shm/true; /dev/shm/true; chown 0 /tmp; exit 7`
	r := h.kept([]string{"--read-only", "-v", folder + ":/ro:ro", "--name=files"}, "/bin/sh", "-c", script)
	if r.code != 7 {
		t.Fatalf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	want := map[string]string{"/ro/new": "openat", "/ro/sub": "mkdir", "/ro/there": "unlinkat", "/ro/other": "", "/ro/link": "symlinkat"}
	for target, call := range want {
		d := denialOf(r.record, agent.DenialFile, target)
		if d == nil || d.Errno != "EROFS" || d.Rule == "" || d.Program == "" || call != "" && d.Call.Name != call {
			t.Errorf("%s: %+v", target, d)
		}
	}
	if d := denialOf(r.record, agent.DenialExec, "/dev/shm/true"); d == nil || d.Errno != "EACCES" {
		t.Errorf("program: %+v", d)
	}
	if d := denialOf(r.record, agent.DenialCapability, "CAP_CHOWN"); d == nil || d.Count != 1 || d.Rule != "user agent" {
		t.Errorf("capability: %+v", d)
	}
	if len(r.record.Denials) != len(want)+2 {
		t.Errorf("%+v", r.record.Denials)
	}
	why := h.clove("why", "files")
	if !strings.Contains(why.stdout, "refused: file /ro/new") || !strings.Contains(why.stdout, "flag: -v "+folder+":/ro\n") {
		t.Errorf("why: %s", why.stdout)
	}
	free := h.agent([]string{"-v", folder + ":/ro"}, "/bin/sh", "-c", `echo x >/ro/new && rm /ro/new`)
	if free.code != 0 || len(free.record.Denials) != 0 {
		t.Errorf("control: %d, %+v", free.code, free.record.Denials)
	}
}

// TestRefusalsOfOwnersAreNotTheSandboxs: an action that would fail on a writable root, too, by
// owners, modes or missing files, is no denial, although the read-only mount refuses it. One
// control is the writable root, where the same fails; the other is root inside, which may do it.
func TestRefusalsOfOwnersAreNotTheSandboxs(t *testing.T) {
	h := newHost(t)
	const script = `
		cd /usr/lib; failed=0; try() { "$@" 2>/dev/null || failed=$((failed+1)); }
		try sh -c 'echo x >new'; try mkdir sub; try ln -s a link; try rm -f os-release; try mv os-release /usr/lib/other
		try chmod 600 os-release; try sh -c 'echo x >>os-release'; try touch os-release; try truncate -s 0 os-release; try mkdir dpkg
		echo $failed`
	run := func(flags ...string) result { return h.agent(flags, "/bin/sh", "-c", script) }
	writable, agents := run(), run("--read-only")
	for name, r := range map[string]result{"writable": writable, "read-only": agents} {
		if r.want(t, agent.StatusExited, 0, "10\n"); len(r.record.Denials) != 0 {
			t.Errorf("%s: %+v", name, r.record.Denials)
		}
	}
	roots := h.kept([]string{"--read-only", "--user=root", "--name=roots"}, "/bin/sh", "-c", script)
	roots.want(t, agent.StatusExited, 0, "10\n")
	for _, target := range []string{"/usr/lib/new", "/usr/lib/sub", "/usr/lib/link", "/usr/lib/os-release", "/usr/lib/other"} {
		if d := denialOf(roots.record, agent.DenialFile, target); d == nil || d.Errno != "EROFS" {
			t.Errorf("root's %s: %+v", target, d)
		}
	}
	if why := h.clove("why", "roots"); !strings.Contains(why.stdout, "refused: file /usr/lib/new") || !strings.Contains(why.stdout, "policy: files.root: writable") {
		t.Errorf("why: %s", why.stdout)
	}
	if denialOf(roots.record, agent.DenialFile, "/usr/lib/dpkg") != nil {
		t.Error("a folder that exists cannot be made anywhere")
	}
}

// TestPythonsCacheIsNoDenial: Python tries to write what it has compiled beside each module that it imports. The
// control is a module in a place that the agent could write, and that is read-only for the run.
func TestPythonsCacheIsNoDenial(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(filepath.Join(folder, "mine.py"), []byte("n = 1\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	r := h.agent([]string{"--read-only", "-v", folder + ":/ro:ro", "-e", "PYTHONPATH=/ro"}, "/usr/bin/python3", "-c",
		`import compileall, this, mine, os; compileall.compile_file(os.__file__, force=True, quiet=2)`)
	if len(r.record.Denials) == 0 {
		t.Fatalf("control: nothing was refused: %d, %s", r.code, r.stderr)
	}
	for _, d := range r.record.Denials {
		if !strings.HasPrefix(d.Target, "/ro/__pycache__") {
			t.Errorf("%+v", d)
		}
	}
}

// TestDenialsOfSessionsAndDetachedRuns: an exec session has a listener of its own, and its
// denials are the run's; cloved's events have both.
func TestDenialsOfSessionsAndDetachedRuns(t *testing.T) {
	d := newCloved(t)
	d.detach("worker", `/usr/bin/perl -e 'syscall(165)'; exec sleep 1000`)
	if r := d.clove("exec", "worker", "--", "/usr/bin/perl", "-e", `syscall(272, 0x10000000); print $!+0`); r.stdout != "1" {
		t.Errorf("unshare in a session: %s%s", r.stdout, r.stderr)
	}
	d.ok("stop", "worker")
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", "worker")), &run); err != nil {
		t.Fatal(err)
	}
	record := run.Record
	if record == nil || denialOf(*record, agent.DenialCall, "mount") == nil || denialOf(*record, agent.DenialCall, "unshare") == nil {
		t.Fatalf("%+v", record)
	}
	events := d.clove("events", "--once", "--run", "worker").stdout
	if !strings.Contains(events, "denied worker") || !strings.Contains(events, "syscall mount by /usr/bin/perl (seccomp standard: mounts)") || !strings.Contains(events, "syscall unshare") {
		t.Errorf("events: %s", events)
	}
}

// refusedForEver makes one refused call after the other, and notes each answer that is not
// EPERM. It says when it begins.
const refusedForEver = `$| = 1; open(F, ">>", "/shared/log"); select(F); $| = 1; print F "begun\n";
	while (1) { $r = syscall(165, 0, 0, 0, 0, 0); print F $r == -1 ? "errno " . ($!+0) . "\n" : "passed\n" if $r != -1 || $! != 1 }`

// TestRefusedWithoutASupervisor: when the supervisor is killed, no call passes that it would
// have refused.
func TestRefusedWithoutASupervisor(t *testing.T) {
	d := newCloved(t)
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	d.detach("orphan", "exec /usr/bin/perl -e '"+refusedForEver+"'", "-v", folder+":/shared", "--user=root")
	log := filepath.Join(folder, "log")
	until(t, "the agent begins", func() bool { text, _ := os.ReadFile(log); return strings.Contains(string(text), "begun") })
	for _, pid := range d.supervisors() {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the run ends", func() bool {
		var run agent.Run
		return json.Unmarshal([]byte(d.ok("inspect", "orphan")), &run) == nil && run.State == agent.StateEnded
	})
	text, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(text), "passed") {
		t.Errorf("%v: %s", err, text)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		if line != "errno 38" { // ENOSYS, the kernel's own
			t.Errorf("%q", line)
			break
		}
	}
}

// TestAFloodOfRefusalsIsPaced: an agent that makes nothing but refused calls, with more
// processes than there are processors, costs its supervisor a share of one processor only,
// and the record stays small. How many it may make before it is slowed down is the control.
func TestAFloodOfRefusalsIsPaced(t *testing.T) {
	d := newCloved(t)
	d.detach("flood", `for i in 1 2 3 4; do /usr/bin/perl -e 'for ($n = 0;; $n++) { syscall(165 + $n % 2) }' & done; wait`)
	pids := d.supervisors()
	if len(pids) != 1 {
		t.Fatalf("supervisors %v", pids)
	}
	// The credit is spent when the supervisor has used so much.
	begun := time.Now()
	until(t, "the flood is seen", func() bool { return usedBy(t, pids[0]) > 400*time.Millisecond })
	unpaced := time.Since(begun)
	before, from := usedBy(t, pids[0]), time.Now()
	time.Sleep(3 * time.Second) // what is measured is a rate
	used, took := usedBy(t, pids[0])-before, time.Since(from)
	share := used.Seconds() / took.Seconds()
	t.Logf("the first 400 ms of work took %s; after that %.0f%% of a processor", unpaced, 100*share)
	if share > 0.6 {
		t.Errorf("the supervisor uses %.0f%% of a processor", 100*share)
	}
	d.ok("stop", "-t=1s", "flood")
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", "flood")), &run); err != nil || run.Record == nil || len(run.Record.Denials) != 2 || run.Record.Denials[0].Count < 1000 {
		t.Errorf("%v: %+v", err, run.Record)
	}
}

// usedBy is the processor time of a process, without its children's.
func usedBy(t *testing.T, pid int) time.Duration {
	t.Helper()
	fields, err := pidfd.Stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	const utime, stime, ticks = 14 - 3, 15 - 3, 100 // proc(5) counts from 1, and ParseStat leaves out two
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(fields)
	}
	return time.Duration(user+system) * time.Second / ticks
}

// TestRefusedProgramsAreSeen: a program outside of the list is in the record, and why says what
// would let it pass. The control is the same with it in the list.
func TestRefusedProgramsAreSeen(t *testing.T) {
	h := newHost(t)
	const script = `/usr/bin/id -u >/dev/null 2>&1; echo $?`
	flags := []string{"--read-only", "--allow-exec=/bin/sh"}
	r := h.kept(append(flags, "--name=listed"), "/bin/sh", "-c", script)
	r.want(t, agent.StatusExited, 0, "126\n")
	d := denialOf(r.record, agent.DenialExec, "/usr/bin/id")
	if d == nil || len(r.record.Denials) != 1 || d.Count != 1 || d.Rule != "files.execute" || d.Errno != "EACCES" || d.Call == nil || d.Call.Name != "execve" {
		t.Errorf("%+v", r.record.Denials)
	}
	if why := h.clove("why", "listed"); !strings.Contains(why.stdout, "refused: exec /usr/bin/id, by files.execute") || !strings.Contains(why.stdout, "flag: --allow-exec /usr/bin/id\n") {
		t.Errorf("why: %s", why.stdout)
	}
	free := h.agent(append(flags, "--allow-exec=/usr/bin/id"), "/bin/sh", "-c", script)
	if free.want(t, agent.StatusExited, 0, "0\n"); len(free.record.Denials) != 0 {
		t.Errorf("control: %+v", free.record.Denials)
	}
}
