//go:build root

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// notOurs is a call that every agent is refused: clove counts processor time itself.
const notOurs = `{"amounts":{"cpu_ms":1}}`

// refusedOnce makes an agent ask for what it may not do, and wants a refusal that says why.
func refusedOnce(t *testing.T, r *running) {
	t.Helper()
	m := r.call(agents.BudgetCharge.Name, notOurs)
	if len(m.Error) == 0 {
		t.Fatalf("it is done: %s", m.Result)
	}
	if e := api.ParseError(m.Error); e.Code != api.CodeDenied || e.Data.Rule != "counted:cpu_ms" || e.Data.Step != "budget" || e.Data.Hint == "" {
		t.Errorf("the refusal is %+v", e)
	}
}

// harmless are calls that are no refusals: allowed ones, a check that says no, and a mistake.
func harmless(t *testing.T, r *running) {
	t.Helper()
	for method, params := range map[string]string{agents.AgentGet.Name: "{}", agents.GrantCheck.Name: `{"what":"tool:other"}`, agents.BudgetGet.Name: `{"nonsense":1}`} {
		if m := r.call(method, params); len(m.Error) == 0 && len(m.Result) == 0 {
			t.Fatalf("%s is not answered\n%s", method, &r.stderr)
		}
	}
}

// The action of --on-denial is taken on an agent that is refused, under cloved's ledger and under
// a run's own. The controls: the same agent with deny, and calls that are no refusals.
func TestOnDenial(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			control := h.calls("--on-denial=deny", "--grant=tool:fetch")
			once := h.calls("--on-denial=end", "--grant=tool:fetch")
			third := h.calls("--on-denial=end-after:3", "--grant=tool:fetch")
			for range 5 {
				refusedOnce(t, control)
			}
			harmless(t, once)
			for range 2 {
				refusedOnce(t, third)
				harmless(t, third)
			}
			once.request(agents.BudgetCharge.Name, notOurs)
			third.request(agents.BudgetCharge.Name, notOurs)
			for _, r := range []*running{once, third} {
				end := r.waitUnasked()
				if end.record.Status != agent.StatusPolicyKill || end.code != agent.ExitKilled || end.record.Signal == nil || *end.record.Signal != "SIGKILL" {
					t.Errorf("%s, exit %d\n%s", end.record.Status, end.code, end.stderr)
				}
				if !strings.Contains(end.stderr, "--on-denial") {
					t.Errorf("it does not say why:\n%s", end.stderr)
				}
			}
			if end := control.wait(); end.record.Status != agent.StatusExited || end.code != 0 {
				t.Errorf("control: %s, exit %d\n%s", end.record.Status, end.code, end.stderr)
			}
		})
	}
}

// With pause, each refusal freezes the agent until a user resumes it. The control is that
// an allowed call freezes nothing. A run that no user could resume does not start.
func TestOnDenialPauses(t *testing.T) {
	d := newCloved(t)
	d.detach("asks", "sleep 1000", self("--on-denial=pause", "--grant=tool:fetch")...)
	calls := []string{"exec", "-i", "asks", "--", agentInside, agentWord, "calls"}
	if r := d.cloveWith(whoami+"\n", calls...); !strings.Contains(r.stdout, `"asks"`) || d.frozen("asks") {
		t.Errorf("control: %q, %s", r.stdout, r.stderr)
	}
	for range 2 {
		said := make(chan string, 1)
		cmd := d.command(t.Context(), calls...)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"budget.charge","params":` + notOurs + "}\n" + whoami + "\n")
		go func() {
			out, err := cmd.CombinedOutput()
			said <- fmt.Sprint(string(out), err)
		}()
		until(t, "it is frozen", func() bool { return d.frozen("asks") })
		d.ok("resume", "asks")
		if text := <-said; !strings.Contains(text, "counted:cpu_ms") || !strings.Contains(text, `"asks"`) || d.frozen("asks") {
			t.Errorf("it does not go on: %s", text)
		}
	}
	refused := d.clove("run", "--rm", "--on-denial=pause", "--grant=tool:fetch", "--", "true")
	if refused.code != agent.ExitStartFailed || !strings.Contains(refused.stderr, "run -d") {
		t.Errorf("in the foreground: %d, %s", refused.code, refused.stderr)
	}
}

// A connection that the gate refuses is a refusal too. The control is the same agent with
// deny, which only sees the refusal.
func TestOnDenialOfTheNetwork(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	run := func(policy string) result {
		return h.agent([]string{"--network=allowlist", "--allow=api.example.com:443", "--on-denial=" + policy}, "python3", "-c", `
import socket, time
try:
    closed = socket.create_connection(("93.184.216.34", 80), 5).recv(1) == b""
except OSError:
    closed = True
print("refused" if closed else "reached", flush=True)
time.sleep(1000 if "`+policy+`" == "end" else 0)
`)
	}
	run("deny").want(t, agent.StatusExited, 0, "refused\n")
	if end := run("end"); end.record.Status != agent.StatusPolicyKill || end.code != agent.ExitKilled || len(end.record.Denials) != 1 {
		t.Errorf("%s, exit %d, %+v\n%s", end.record.Status, end.code, end.record.Denials, end.stderr)
	}
}

// A net grant that expires closes the network to new connections and cuts the one that it
// allowed, without any call. The control is a connection by a grant that stays.
func TestAnExpiredNetGrantCuts(t *testing.T) {
	d, _ := newClovedWithInternet(t)
	const address = otherAddress + ":22"
	hold := func(name string, expires time.Time) *running {
		r := d.start(self("--name="+name, "--network=none", "--agent-socket"), "sh", "-c", `echo up; read -r now; exec "$@"`, "sh", agentInside, agentWord, "hold", address)
		if line := r.line(); line != "up" {
			t.Fatalf("%s: %q\n%s", name, line, &r.stderr)
		}
		params := map[string]any{"run": name, "grant": "net:" + address}
		if !expires.IsZero() {
			params["expires"] = expires
		}
		d.api(methods.GrantGive.Name, params, nil)
		if _, err := r.stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if line := r.line(); line != "served" {
			t.Fatalf("%s: %q\n%s", name, line, &r.stderr)
		}
		return r
	}
	control := hold("stays", time.Time{})
	ends := time.Now().Add(5 * time.Second)
	held := hold("expires", ends)
	if line := held.line(); line != "cut" {
		t.Errorf("%q", line)
	}
	if early := time.Until(ends); early > 0 {
		t.Errorf("it is cut %v before its expiry", early)
	}
	held.wait()
	var list api.GrantListResult
	d.api(agents.GrantList.Name, map[string]any{"run": "stays"}, &list)
	if len(list.Grants) != 1 {
		t.Errorf("%+v", list)
	}
	d.api(agents.GrantRevoke.Name, map[string]any{"run": "stays", "id": list.Grants[0].ID}, nil)
	if line := control.line(); line != "cut" {
		t.Errorf("control: %q", line)
	}
	control.wait()
}
