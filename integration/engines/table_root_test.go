//go:build root

package engines

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// The runtimes of every table. The first one is the control: its behaviour is what users of an
// engine know.
var runtimes = []string{"runc", "clove"}

// row is one behaviour, as a user of the engine sees it.
type row struct {
	name string
	// script is for bash, after the engine's prelude, with R the runtime's name and
	// N a name for a container, which is removed at its end.
	script string
	// want is a regular expression for the whole standard output without white space at its
	// ends. It is the same for both runtimes: a difference is a failure.
	want string
	// clove is clove-oci's output if it differs intentionally.
	clove string
	// cgroup marks a row that depends on the host's version of cgroups, and so runs in both
	// lanes.
	cgroup bool
}

// rowTime bounds one script on an idle host.
const rowTime = time.Minute

// sample chooses the rows that run: all, or every third if a sample is enough. The virtual
// machine interprets every instruction, so there only rows that depend on cgroups run, and in
// a sample one of them.
func sample(rows []row) []row {
	some, step := rows, testhost.Sample(1, 3, 1)
	if testhost.Lane() == testhost.LaneVM {
		some = testhost.Few(slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.cgroup }), 1)
	}
	var chosen []row
	for i := 0; i < len(some); i += step {
		chosen = append(chosen, some[i])
	}
	return chosen
}

// try runs each row with each runtime, both at the same time.
func try(t *testing.T, prelude string, rows []row) {
	for _, r := range sample(rows) {
		t.Run(r.name, func(t *testing.T) {
			for _, runtime := range runtimes {
				t.Run(runtime, func(t *testing.T) {
					t.Parallel()
					r.try(t, prelude, runtime)
				})
			}
		})
	}
}

func (r row) try(t *testing.T, prelude, runtime string) {
	t.Helper()
	shown := r.want
	if runtime == "clove" && r.clove != "" {
		shown = r.clove
	}
	name := strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(r.name) + "-" + runtime
	want(t, shown, prelude+r.script, "R="+runtime, "N="+name)
}

// want runs a script, with N=one unless the environment sets N, and compares its output with a
// row's expression.
func want(t *testing.T, shown, script string, env ...string) {
	t.Helper()
	stdout, stderr := shell(t, script, append([]string{"N=one"}, env...)...)
	if !regexp.MustCompile(`^(?s:` + shown + `)$`).MatchString(strings.TrimSpace(stdout)) {
		t.Errorf("%s\nprints\n%swant\n%s\nstderr\n%s", script, stdout, shown, stderr)
	}
}

// shell runs a script to its end, whatever its status: scripts print the statuses that matter.
func shell(t *testing.T, script string, env ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(rowTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	// Processes that follow logs and events stay in the script's process group.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Run() // its output shows the result
	if ctx.Err() != nil {
		t.Errorf("had to be ended:\n%s", script)
	}
	unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it may be empty
	return out.String(), err.String()
}
