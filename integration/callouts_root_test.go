//go:build root

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api/agents"
)

// calloutDir is a directory that every user may write to.
func calloutDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove-callout")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// limited runs clove as a member, from a shell with these limits of open files.
func (d *cloved) limited(soft, hard int, args ...string) {
	d.t.Helper()
	cmd := d.command(d.t.Context(), args...)
	cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -Sn %d && ulimit -Hn %d && exec "$0" "$@"`, soft, hard), cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Dir = "/bin/sh", "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: memberUID, Gid: memberUID, Groups: []uint32{groupID}}}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("%v: %s", err, &said)
	}
}

// alive reports whether the process lives whose number is the file's last word.
func (d *cloved) alive(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	words := strings.Fields(string(text))
	pid, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		d.t.Fatal(err)
	}
	return unix.Kill(pid, 0) == nil
}

// A member's command has the limits of the member's own shell, and a cgroup that is not
// cloved's. The control is cloved's own limit, which the command had before.
func TestACommandHasItsCallersLimits(t *testing.T) {
	d := newClovedFor(t, groupName)
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil || own.Max <= 1000 {
		t.Fatalf("control: cloved itself may have more than 1000 open files: %d, %v", own.Max, err)
	}
	file := filepath.Join(calloutDir(t), "said")
	d.limited(900, 1000, "run", "-d", "--name", "mine", "--budget", "reviews=10", "--at-end", "pause",
		"--on-warn", fmt.Sprintf("{ ulimit -Hn; cat /proc/self/cgroup; } >%s.part; mv %[1]s.part %[1]s", file), "--", "sleep", "1000")
	d.api(agents.BudgetCharge.Name, map[string]any{"run": members("mine"), "amounts": map[string]int{"reviews": 8}}, nil)
	var text []byte
	until(t, "the command has said its limits", func() (there bool) {
		var err error
		text, err = os.ReadFile(file)
		return err == nil
	})
	if !strings.HasPrefix(string(text), "1000\n") {
		t.Errorf("limits: %s", text)
	}
	if want := fmt.Sprintf("/commands-%d/%s-", memberUID, d.inspect(members("mine")).Spec.ID); strings.Count(string(text), want) < 2 {
		t.Errorf("%s is not its cgroup:\n%s", want, text)
	}
	d.ok("rm", "-f", members("mine"))
	d.ok("check")
}

// Processes that a command leaves in a session of their own end with the command; and both end when the
// run is removed, when its supervisor dies, and when a run with --rm is stopped.
func TestACommandLeavesNothing(t *testing.T) {
	d := newClovedFor(t, groupName)
	dir := calloutDir(t)
	// stay: the command waits for what it has begun.
	begin := func(name, stay string, flags ...string) string {
		file := filepath.Join(dir, name)
		command := fmt.Sprintf("setsid sleep 1000 >/dev/null 2>&1 & echo $! >%s.part; sleep 0.1; mv %[1]s.part %[1]s; %s", file, stay)
		d.limited(900, 1000, append(append([]string{"run", "-d", "--name", name, "--budget", "reviews=10", "--at-end", "pause", "--on-warn", command}, flags...), "--", "sleep", "1000")...)
		d.api(agents.BudgetCharge.Name, map[string]any{"run": members(name), "amounts": map[string]int{"reviews": 8}}, nil)
		until(t, "the command has begun", func() bool { _, err := os.Stat(file); return err == nil })
		return file
	}
	ended := begin("ended", ":")
	until(t, "the end of the command ends its child", func() bool { return !d.alive(ended) })
	for _, c := range []struct {
		name  string
		flags []string
		end   func()
	}{
		{"removed", nil, func() { d.ok("rm", "-f", members("removed")) }},
		{"stopped", []string{"--rm"}, func() { d.ok("stop", "-t", "0", members("stopped")) }},
		{"killed", nil, func() {
			if err := unix.Kill(d.inspect(members("killed")).Lease.SupervisorPID, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}},
	} {
		file := begin(c.name, "sleep 1000", c.flags...)
		if !d.alive(file) {
			t.Errorf("control: %s: its child has ended before", c.name)
		}
		c.end()
		until(t, c.name+": it ends", func() bool { return !d.alive(file) })
	}
	d.ok("rm", "-f", members("ended"), members("killed"))
	d.ok("check")
}
