//go:build root

package integration

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// probeInside is where the program of attacks appears in a sandbox.
const probeInside = "/probe"

// probeProgram returns the path of the program of attacks on the host.
func probeProgram(t *testing.T) string {
	t.Helper()
	program, err := probe.Path(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// withProbe returns the flags that bind the program into the sandbox, and more flags.
func withProbe(program string, more ...string) []string {
	return append([]string{"-v", program + ":" + probeInside + ":ro"}, more...)
}

// probeScript runs several of the program's commands one after the other.
func probeScript(program string, commands []probe.Command) string {
	var script strings.Builder
	for _, c := range commands {
		script.WriteString(program)
		for _, arg := range c.Args {
			script.WriteString(" '" + arg + "'")
		}
		script.WriteString(" || exit 9\n")
	}
	return script.String()
}

// attackOutside is the control: all commands as root of the host.
func attackOutside(t *testing.T, program string, commands []probe.Command) map[string]probe.Result {
	t.Helper()
	output, err := exec.Command("sh", "-c", probeScript(program, commands)).Output()
	if err != nil {
		t.Fatalf("control: %v\n%s", err, output)
	}
	return attacked(t, output)
}

// attackInside runs all commands in one sandbox.
func (h *host) attackInside(t *testing.T, program string, commands []probe.Command, flags ...string) map[string]probe.Result {
	t.Helper()
	r := h.agent(withProbe(program, flags...), "sh", "-c", probeScript(probeInside, commands))
	if r.record.Status != agent.StatusExited || r.code != 0 {
		t.Fatalf("the attacks did not run to their end: %s, exit %d\n%s%s", r.record.Status, r.code, r.stdout, r.stderr)
	}
	return attacked(t, []byte(r.stdout))
}

func attacked(t *testing.T, output []byte) map[string]probe.Result {
	t.Helper()
	results, err := probe.Parse(output)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// victim is a process of the host that waits until the end of the test, for attacks on another
// process.
func victim(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	return strconv.Itoa(cmd.Process.Pid)
}

// TestEveryAttackIsHeld runs the whole table: outside each attack succeeds, inside it gets the
// answer that the table names, whichever user the agent is.
func TestEveryAttackIsHeld(t *testing.T) {
	h := newHost(t)
	program := probeProgram(t)
	scratch, err := os.MkdirTemp("/tmp", "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	outside := attackOutside(t, program, probe.Commands(victim(t), scratch))
	for _, row := range []struct {
		name   string
		flags  []string
		lacked []string // attacks that succeed with the standard profile and not here
	}{
		{name: "agent"},
		{name: "root", flags: []string{"--user=root"}},
		{name: "strict", flags: []string{"--seccomp=strict"}, lacked: []string{
			"socket tcp", "socket tcp6", "socket udp", "socket route", "socket tcp-high-bit"}},
		{name: "strict root", flags: []string{"--seccomp=strict", "--user=root"}, lacked: []string{
			"socket tcp", "socket tcp6", "socket udp", "socket route", "socket tcp-high-bit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			commands := probe.Commands("1", "/tmp")
			inside := h.attackInside(t, program, commands, row.flags...)
			for _, c := range commands {
				c.Passes = slices.DeleteFunc(slices.Clone(c.Passes), func(name string) bool { return slices.Contains(row.lacked, name) })
				for _, line := range c.LeftOut(outside) {
					t.Log(line)
				}
				for _, problem := range c.Problem(outside, inside) {
					t.Error(problem)
				}
			}
			for _, name := range row.lacked {
				if inside[name].OK {
					t.Errorf("%s works, and should not in this profile", name)
				}
			}
		})
	}
}

// TestNoDescriptorIsInherited: while clove starts the agent it has the store, sockets and
// directories of the root open, and its caller may have left some open.
func TestNoDescriptorIsInherited(t *testing.T) {
	h := newHost(t)
	program := probeProgram(t)
	const left = `exec 7</etc/passwd 8</etc 9>/dev/null; exec "$0" "$@"`
	outside, err := exec.Command("sh", "-c", left, program, "fds").Output()
	if err != nil || !strings.Contains(attacked(t, outside)["fds"].Detail, "7=/etc/passwd") {
		t.Fatalf("control: a plain child does not inherit: %v\n%s", err, outside)
	}
	for _, flags := range [][]string{nil, {"--user=root"}, {"-t"}} {
		cmd := exec.Command("sh", append([]string{"-c", left, filepath.Join(h.bin, "clove"), "run", "--rm"},
			append(withProbe(program, flags...), "--", probeInside, "fds")...)...)
		cmd.Env = append(os.Environ(), "CLOVE_ROOT="+h.state, "CLOVE_RUN_DIR="+h.run)
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", flags, err, output)
		}
		if r, ok := attacked(t, output)["fds"]; !ok || r.OK {
			t.Errorf("%v: inherited %q", flags, r.Detail)
		}
	}
}
