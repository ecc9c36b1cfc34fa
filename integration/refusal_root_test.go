//go:build root

package integration

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// made lists everything below the installation's directories, which a refusal must not change.
func (h *host) made() string {
	out, err := exec.Command("find", h.state, h.run).Output()
	if err != nil {
		h.t.Fatalf("cannot list %s and %s: %v", h.state, h.run, err)
	}
	return string(out)
}

// refused runs clove, which must exit with 125, print one clear line and a hint, and create
// nothing; the result file, if requested, has the error.
func (h *host) refused(cmd *exec.Cmd, want string) {
	h.t.Helper()
	before := h.made()
	out, _ := cmd.CombinedOutput() // the exit status is checked below
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if code := cmd.ProcessState.ExitCode(); code != agent.ExitStartFailed {
		h.t.Errorf("exit %d, want 125\n%s", code, out)
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "clove: ") || !strings.HasPrefix(lines[1], "hint: ") {
		h.t.Errorf("not one line and a hint:\n%s", out)
	}
	if !strings.Contains(lines[0], want) {
		h.t.Errorf("%q does not say %q", lines[0], want)
	}
	if after := h.made(); after != before {
		h.t.Errorf("something was made:\n%s\nbefore:\n%s", after, before)
	}
}

func TestBadInputMakesNothing(t *testing.T) {
	h := newHost(t)
	h.sh("true").want(t, agent.StatusExited, 0, "") // control: a valid run, which also makes the directories
	script := scriptOf(t, "agent.sh", "#!/bin/sh\ntrue\n")
	foreign := scriptOf(t, "foreign", foreignProgram())
	loop := filepath.Join(t.TempDir(), "loop.sh")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		args []string
		want string
	}{
		"missing script":       {[]string{"/nonexistent/agent.py"}, "does not exist"},
		"directory":            {[]string{t.TempDir()}, "is a directory"},
		"another architecture": {[]string{foreign}, "another"},
		"symlink loop":         {[]string{loop}, "leads back to itself"},
		"unknown flag":         {[]string{script, "--bogus"}, "--bogus"},
		"bad size":             {[]string{script, "--memory", "12X"}, "12X"},
		"below the floor":      {[]string{script, "--memory", "1K"}, "least"},
		"negative cpus":        {[]string{script, "--cpus", "-1"}, "negative"},
		"cpuset out of range":  {[]string{script, "--cpuset-cpus", "4096"}, "4096"},
		"name with a slash":    {[]string{script, "--name", "a/b"}, "not a name"},
		"name with a control":  {[]string{script, "--name", "a\nb"}, "not a name"},
		"no such source":       {[]string{script, "-v", "/nonexistent:/data"}, "/nonexistent"},
		"target above":         {[]string{script, "-v", "/tmp:/data/../.."}, "target"},
		"relative target":      {[]string{script, "-v", "/tmp:data"}, "target"},
		"target on proc":       {[]string{script, "-v", "/tmp:/proc/x"}, "/proc"},
		"seccomp file":         {[]string{script, "--seccomp", "/nonexistent.json"}, "seccomp"},
		"workspace of all":     {[]string{"--workspace", "/", "--", "true"}, "/"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			h.refused(h.command(t.Context(), append([]string{"run"}, row.args...)...), row.want)
		})
	}
}

// scriptOf writes an executable file into a folder of its own.
func scriptOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// foreignProgram returns the header of an ELF program for another machine.
func foreignProgram() string {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[16:], 2)   // ET_EXEC
	binary.LittleEndian.PutUint16(head[18:], 243) // EM_RISCV
	binary.LittleEndian.PutUint32(head[20:], 1)
	return string(head)
}

func TestTooMuchEnvironmentIsRefused(t *testing.T) {
	h := newHost(t)
	h.sh("true").want(t, agent.StatusExited, 0, "")
	file := filepath.Join(t.TempDir(), "env")
	var text strings.Builder
	for i := range 100 { // 10 MB of variables, each of which is allowed
		fmt.Fprintf(&text, "BIG%d=%s\n", i, strings.Repeat("x", 100_000))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h.refused(h.command(t.Context(), "run", "--env-file", file, "--", "true"), "environment")
	if err := os.WriteFile(file, []byte("ONE="+strings.Repeat("x", 1<<17)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.refused(h.command(t.Context(), "run", "--env-file", file, "--", "true"), "ONE")
}

func TestANameIsGivenOnce(t *testing.T) {
	h := newHost(t)
	first := h.clove("run", "--name", "twin", "--", "true")
	if first.code != 0 {
		t.Fatalf("the first: %d\n%s", first.code, first.stderr)
	}
	h.refused(h.command(t.Context(), "run", "--name", "twin", "--", "true"), "twin")
	if r := h.clove("rm", "twin"); r.code != 0 {
		t.Fatalf("rm: %s", r.stderr)
	}
	if again := h.clove("run", "--rm", "--name", "twin", "--", "true"); again.code != 0 {
		t.Errorf("after rm: %d\n%s", again.code, again.stderr)
	}
}

func TestOnlyRootRuns(t *testing.T) {
	h := newHost(t)
	h.sh("true").want(t, agent.StatusExited, 0, "")
	cmd := h.command(t.Context(), "run", "--", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	h.refused(cmd, "root")
}

// TestAHostThatCannotEnforceIsRefused removes one feature at a time, in a mount namespace of
// the command's own. The control is the same namespace with nothing removed.
func TestAHostThatCannotEnforceIsRefused(t *testing.T) {
	h := newHost(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("kill_process\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clove := filepath.Join(h.bin, "clove")
	without := func(script string) *exec.Cmd {
		cmd := h.command(t.Context(), "run", "--rm", "--", "true")
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-ec", script + ` exec "$0" "$@"`, clove}, cmd.Args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		return cmd
	}
	if out, err := without("true;").CombinedOutput(); err != nil {
		t.Fatalf("control: %v\n%s", err, out)
	}
	h.refused(without("umount -l /sys/fs/cgroup;"), "cgroup")
	h.refused(without("for d in $(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $d; done;"), "read-only")
	h.refused(without("mount --bind "+empty+" /proc/sys/kernel/seccomp/actions_avail;"), "seccomp")
}
