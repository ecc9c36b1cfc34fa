//go:build root

package runtime

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/seccomp"
)

// needsLandlock skips a test on a kernel without it.
func needsLandlock(t *testing.T) {
	t.Helper()
	if _, missing := findLandlock(nil); missing != "" {
		t.Skip(missing)
	}
}

// writesAgain writes beneath /opt when its fifo says so.
const writesAgain = `mkfifo /tmp/go && echo ready && read now </tmp/go && if m=$(touch /opt/agents 2>&1); then echo written; else echo ${m##*: }; fi`

// TestSecondWall: a writable mount that appears where the root is read-only is written
// without Landlock, and with it neither by the agent nor by an exec session. An agent that
// may mount is in no domain, so it is the control. A run that requires Landlock has it.
func TestSecondWall(t *testing.T) {
	needsLandlock(t)
	for _, row := range []struct{ filter, required, want string }{
		{agent.SeccompUnconfined, "", "written"}, {seccomp.Standard, "", "Permission denied"}, {seccomp.Standard, agent.LandlockRequired, "Permission denied"},
	} {
		filter, want := row.filter, row.want
		for _, user := range []agent.User{policies.AgentUser, policies.RootUser} {
			a := startLive(t, writesAgain, func(s *agent.Spec) {
				s.User, s.Files.ReadOnly, s.Seccomp.Profile, s.Files.Landlock = user, true, filter, row.required
			})
			if got := a.line(); got != "ready" {
				t.Fatal(got)
			}
			out, err := exec.Command("nsenter", "-t", fmt.Sprint(a.s.box.pid), "-m", "mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/opt").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			said := a.shell(`if m=$(touch /opt/sessions 2>&1); then echo written; else echo ${m##*: }; fi; echo now >/tmp/go`)
			if got := strings.TrimSpace(said); got != want {
				t.Errorf("%s, %s: a session: %s, want %s", filter, user.Name, got, want)
			}
			if got := a.line(); got != want {
				t.Errorf("%s, %s: the agent: %s, want %s", filter, user.Name, got, want)
			}
			record := a.ends()
			if held := record.Enforced[agent.ControlLandlock] != ""; held != (filter == seccomp.Standard) {
				t.Errorf("%s: the record says %q", filter, record.Enforced[agent.ControlLandlock])
			}
		}
	}
}

// TestDomainsSignalEachOther: an exec session is in a domain of its own.
func TestDomainsSignalEachOther(t *testing.T) {
	needsLandlock(t)
	a := startLive(t, `mkfifo /tmp/pid; sleep 1000 & echo $!; read p </tmp/pid; kill $p; wait $!; echo $?; sleep 1000`, nil) // its end would end the session that kills, too
	ended := make(chan execResult)
	go func() {
		ended <- a.exec(agent.Exec{Command: []string{"sh", "-c", "echo $$ >/tmp/pid; exec sleep 1000"}}, "")
	}()
	child := a.line()
	if r := <-ended; r.code != 143 {
		t.Errorf("a session that the agent killed: %+v", r)
	}
	a.shell("kill " + child)
	if got := a.line(); got != "143" {
		t.Errorf("a child of the agent's that a session killed ended with %s", got)
	}
}

// ordinaryWork is what programs do with files, in one script. Each line that fails ends it.
const ordinaryWork = `set -e
cd /tmp; mkdir -p a/b; echo x >a/f; mv a/f a/b/g; ln a/b/g a/h; ln -s h a/l; cp -r a c; mv c /var/tmp/c; rm -r /var/tmp/c
mv a/h /home/agent/h; : >/home/agent/h; truncate -s 100 /home/agent/h; mkfifo p; rm p
echo x >/dev/null; echo x >/dev/stdout; head -c 8 /dev/urandom >/dev/null; stty -F /dev/ptmx -a >/dev/null
echo work >/proc/self/comm; cat /proc/self/maps /proc/self/environ >/dev/null; ls -l /proc/self/fd >/dev/null
sleep 1000 & cat /proc/$!/environ >/dev/null; readlink /proc/$!/exe; kill $!
exec 3<>/tmp/deleted; rm /tmp/deleted; echo kept >&3; cat /proc/self/fd/3
touch /dev/shm/x; echo 'int main(){return 0;}' >m.c; echo done`

func TestOrdinaryWorkPasses(t *testing.T) {
	needsLandlock(t)
	for _, readOnly := range []bool{false, true} {
		for _, user := range []agent.User{policies.AgentUser, policies.RootUser} {
			a := startLive(t, ordinaryWork, func(s *agent.Spec) { s.User, s.Files.ReadOnly = user, readOnly })
			if got := a.saysAll(); !strings.HasSuffix(got, "kept\ndone\n") {
				t.Errorf("%s, read-only %t:\n%s", user.Name, readOnly, got)
			}
			if record := a.ends(); record.ExitCode != 0 || record.Enforced[agent.ControlLandlock] == "" {
				t.Errorf("%s, read-only %t: exit %d, held by %q", user.Name, readOnly, record.ExitCode, record.Enforced[agent.ControlLandlock])
			}
		}
	}
}
