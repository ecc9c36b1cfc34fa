//go:build root

package integration

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// debuggers are the attacks on another process that debuggers make on their own; traces are
// those of them that are calls which a filter can refuse.
var (
	traces    = []string{"ptrace", "vm-read", "vm-write"}
	debuggers = append([]string{"mem-write", "environ", "maps"}, traces...)
)

// onVictim is a script that attacks the process $victim.
const onVictim = probeInside + " other $victim "

// outcomes are the answers to attacks, by their names.
func (h *host) outcomes(t *testing.T, ways []string, script string, flags ...string) map[string]string {
	t.Helper()
	r := h.agent(withProbe(probeProgram(t), flags...), "sh", "-c", script+strings.Join(ways, " "))
	if r.record.Status != agent.StatusExited || r.code != 0 {
		t.Fatalf("%v: %s, exit %d\n%s%s", flags, r.record.Status, r.code, r.stdout, r.stderr)
	}
	all := map[string]string{}
	for name, result := range attacked(t, []byte(r.stdout)) {
		all[strings.TrimPrefix(name, "other ")] = result.Outcome()
	}
	return all
}

// TestAnAgentTracesItsOwnChild: under standard, and by no call under what is below. A process may
// not take descriptors of its child in any of them.
func TestAnAgentTracesItsOwnChild(t *testing.T) {
	h := newHost(t)
	const script = "sleep 1000 & victim=$!; " + onVictim
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{nil, probe.Succeeded}, {[]string{"--user=root"}, probe.Succeeded}, {[]string{"--seccomp=unconfined"}, probe.Succeeded},
		{[]string{"--seccomp=strict"}, "EPERM"}, {[]string{"--policy=sandboxed"}, "EPERM"}, {[]string{"--policy=readonly"}, "EPERM"},
	} {
		got := h.outcomes(t, append([]string{"pidfd-getfd"}, debuggers...), script, row.flags...)
		for _, way := range traces {
			if got[way] != row.want {
				t.Errorf("%v: %s: %q, want %q", row.flags, way, got[way], row.want)
			}
		}
		if got["mem-write"] != probe.Succeeded { // a file of its own process, which no filter refuses
			t.Errorf("control: %v: %v", row.flags, got)
		}
		if refused := got["pidfd-getfd"] == "EPERM"; refused == (len(row.flags) > 0 && strings.Contains(row.flags[0], "unconfined")) {
			t.Errorf("%v: pidfd-getfd: %q", row.flags, got["pidfd-getfd"])
		}
	}
}

// TestOtherUsersAreNotTraced: of two users inside neither may trace the other, and root inside
// may not as root. The control is the same user.
func TestOtherUsersAreNotTraced(t *testing.T) {
	h := newHost(t)
	as := func(uid, command string) string {
		if uid == "0" {
			return command
		}
		return "setpriv --reuid=" + uid + " --regid=" + uid + " --clear-groups --inh-caps=-all " + command
	}
	for _, row := range []struct {
		victim, attacker string
		works            bool
	}{{"2000", "2000", true}, {"0", "0", true}, {"2000", "3000", false}, {"0", "2000", false}, {"2000", "0", false}} {
		script := as(row.victim, "sleep 1000 & victim=$!; ") + "until grep -q '^Name:.*sleep' /proc/$victim/status; do sleep 0.01; done; " + as(row.attacker, onVictim)
		for way, outcome := range h.outcomes(t, debuggers, script, "--user=root") {
			if works := outcome == probe.Succeeded; works != row.works {
				t.Errorf("%s on a process of %s: %s: %q", row.attacker, row.victim, way, outcome)
			}
		}
	}
}

// TestAddressesAreFixedOnRequest: as debuggers and sanitizers do for what they start.
func TestAddressesAreFixedOnRequest(t *testing.T) {
	h := newHost(t)
	const script = "setarch -R cat /proc/self/personality"
	h.sh(script).want(t, agent.StatusExited, 0, "00040000\n")
	h.sh("cat /proc/self/personality").want(t, agent.StatusExited, 0, "00000000\n") // control
	if r := h.sh(script, "--seccomp=strict"); r.code == 0 || r.stdout != "" {
		t.Errorf("strict: %d, %s", r.code, r.stdout)
	}
}
