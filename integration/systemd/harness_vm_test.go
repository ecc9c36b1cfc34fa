//go:build vm

package systemd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// The two packages that the lane builds.
const (
	firstVersion  = "1.0.0"
	secondVersion = "1.0.1"
)

// patience bounds every command and every wait under emulation.
const patience = 3 * time.Minute

// TestMain lets these tests run in the virtual machine only.
func TestMain(m *testing.M) {
	if testhost.Lane() != testhost.LaneVM {
		fmt.Fprintln(os.Stderr, "THESE TESTS RUN IN THE VM LANE ONLY (make vm): they install packages, set the clock and reboot")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// output is what a command did.
type output struct {
	text string // stdout and stderr
	code int
}

// try runs a command.
func try(t *testing.T, name string, args ...string) output {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait() // the exit status is in ProcessState
	return output{text.String(), cmd.ProcessState.ExitCode()}
}

// do runs a command that must succeed and returns what it wrote.
func do(t *testing.T, name string, args ...string) string {
	t.Helper()
	o := try(t, name, args...)
	if o.code != 0 {
		t.Fatalf("%s %s: %d\n%s", name, strings.Join(args, " "), o.code, o.text)
	}
	return strings.TrimSpace(o.text)
}

// sh is do for a line of shell.
func sh(t *testing.T, script string) string {
	t.Helper()
	return do(t, "sh", "-c", script)
}

func deb(version string) string {
	return filepath.Join(os.Getenv("CLOVE_DEB_DIR"), "clove_"+version+"_amd64.deb")
}

// installed installs the first package if needed and starts cloved; at the end of the test it
// removes all agents.
func installed(t *testing.T) {
	t.Helper()
	install(t)
	t.Cleanup(func() { removeAll(t) })
}

func install(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/sbin/cloved"); err != nil {
		do(t, "dpkg", "-i", deb(firstVersion))
	}
	do(t, "systemctl", "start", "clove.service")
}

func removeAll(t *testing.T) {
	t.Helper()
	for _, run := range runs(t) {
		do(t, "clove", "rm", "-f", run.Spec.Name)
	}
	if o := try(t, "clove", "check"); o.code != 0 {
		t.Errorf("clove check: %s", o.text)
	}
}

func runs(t *testing.T) []agent.Run {
	t.Helper()
	var all []agent.Run
	if err := json.Unmarshal([]byte(do(t, "clove", "ps", "-a", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func inspect(t *testing.T, name string) agent.Run {
	t.Helper()
	var run agent.Run
	if err := json.Unmarshal([]byte(do(t, "clove", "inspect", name)), &run); err != nil {
		t.Fatal(err)
	}
	return run
}

// detach starts an agent that runs a shell script.
func detach(t *testing.T, name, script string, flags ...string) {
	t.Helper()
	args := append([]string{"run", "-d", "--name", name}, flags...)
	do(t, "clove", append(args, "--", "sh", "-c", script)...)
}

// counting prints a number each tenth of a second.
const counting = `i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done`

// lastLine returns the newest line of an agent's log.
func lastLine(t *testing.T, name string) int {
	t.Helper()
	n, _ := strconv.Atoi(do(t, "clove", "logs", "--tail", "1", name)) // none yet: 0
	return n
}

// until polls, for another program's state that no event reports.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// mainPID is cloved's process.
func mainPID(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(do(t, "systemctl", "show", "--property=MainPID", "--value", "clove.service"))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// cgroupOf returns the cgroup in which the kernel has a process.
func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(text), "0::"))
}

// boot counts from 1 in each package.
func boot() int {
	n, _ := strconv.Atoi(os.Getenv("CLOVE_BOOT"))
	return n
}

// again reboots the machine, orderly or by reset, and calls the test once more.
func again(t *testing.T, how string) {
	t.Helper()
	t.Logf("boot %d: goes on after a %s reboot", boot(), how)
	if err := os.WriteFile("/mnt/reboot", []byte(how+" ^"+t.Name()+"$\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
