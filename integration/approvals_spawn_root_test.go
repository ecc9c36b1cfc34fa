//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/internal/testhost"
)

// askingLead asks for a child for each line of its input, with the same key until it is answered.
const askingLead = `
import json
for line in sys.stdin:
    n = line.strip()
    while True:
        try:
            answer = a.ask("agent.spawn", manifest="worker", name="c" + n, args=[n], why="round " + n, key=n)
        except (OSError, ValueError):
            a, answer = calls.Agent(), {"error": {"code": -32005}}
        if answer.get("error", {}).get("code") != -32005:
            break
        time.sleep(0.02)
    print(json.dumps(answer), flush=True)
`

// without takes the grant for children from a family's parent.
func without(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.Replace(string(text), "spawn: [worker.yaml]\n", "", 1))
	return file
}

// askedFamily starts a parent that has no grant for children, and asks people about each.
func askedFamily(t *testing.T, d *cloved, name string) *running {
	t.Helper()
	file := without(t, family(t, askingLead, "", "ask: [spawn]"))
	d.ok("manifest", "add", filepath.Join(filepath.Dir(file), "worker.yaml"))
	return d.start([]string{"--name", name, file})
}

// A child that no grant covers waits for people, who see all that it would have, and starts after the yes. The agent has
// no method to answer with, by its own socket or that of cloved. The control is the same parent without --ask.
func TestAChildWaitsForAYes(t *testing.T) {
	d := newCloved(t)
	lead := askedFamily(t, d, "lead")
	fmt.Fprintln(lead.stdin, "1")
	asked := d.question(t)
	if asked.Kind != api.ApproveSpawn || asked.Says != "round 1" || !strings.Contains(strings.Join(asked.Shown, "\n"), "network: none") {
		t.Errorf("%+v", asked)
	}
	answer := fmt.Sprintf(`print(a.ask("approval.respond", run=%q, id=%q, digest=%q, allow=True)["error"]["message"], os.path.exists(%q))`, asked.Run, asked.ID, asked.Digest, d.socket)
	for _, method := range []string{methods.ApprovalRespond.Name, methods.ApprovalAsk.Name, methods.ApprovalList.Name, methods.ApprovalGet.Name} {
		answer += fmt.Sprintf("\nprint(a.ask(%q)[\"error\"][\"code\"])", method)
	}
	inside := without(t, family(t, answer, "", "agent_socket: true"))
	if out := d.ok("run", "--rm", "--name", "other", inside); strings.Count(out, "-32601") != 4 || !strings.Contains(out, "for agents False\n") {
		t.Errorf("another agent of the owner's: %s", out)
	}
	if again := d.question(t); again.ID != asked.ID {
		t.Errorf("%+v", again)
	}
	shown := d.ok("approvals", "allow", asked.ID)
	if !strings.Contains(shown, "a yes starts it once, and nothing else") {
		t.Errorf("%s", shown)
	}
	if line := lead.line(); !strings.Contains(line, `"name": "c1"`) {
		t.Errorf("%s", line)
	}
	if end := lead.wait(); end.code != 0 {
		t.Errorf("%d %s", end.code, end.stderr)
	}
	control := without(t, family(t, `print(a.ask("agent.spawn", manifest="worker", key="k")["error"]["code"])`, "", "agent_socket: true"))
	if out := d.ok("run", "--rm", "--name", "control", control); out != "-32004\n" {
		t.Errorf("control: %q", out)
	}
}

// TestAChildIsStartedOnceOrNotAtAll kills cloved between the question, the answer and the start. CLOVE_CYCLES sets the
// number of kills, CLOVE_SEED repeats their moments.
func TestAChildIsStartedOnceOrNotAtAll(t *testing.T) {
	cycles := numberOf(t, "CLOVE_CYCLES", testhost.Sample(500, 10, 3))
	seed := numberOf(t, "CLOVE_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d cycles, CLOVE_SEED=%d", cycles, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 34))
	d := newCloved(t)
	var lead *running
	var born time.Time
	name, yes, repeated := "", 0, 0
	defer func() {
		if t.Failed() && lead != nil {
			t.Logf("%s began at %s: %s", name, born.Format(time.TimeOnly), &lead.stderr)
		}
	}()
	for i := range cycles {
		if lead == nil {
			name, born = fmt.Sprintf("lead-%d", i), time.Now()
			lead = askedFamily(t, d, name)
		}
		allow := i%4 != 3
		verb := map[bool]string{true: "allow", false: "deny"}[allow]
		fmt.Fprintln(lead.stdin, i)
		asked := d.question(t)
		answered := make(chan result, 1)
		switch random.IntN(3) {
		case 0: // before the answer
			close(answered)
		case 1: // beside it
			go func() { answered <- d.clove("approvals", verb, asked.ID) }()
			<-time.After(time.Duration(random.Int64N(int64(longestUp()))))
		case 2: // behind it
			answered <- d.clove("approvals", verb, asked.ID)
			<-time.After(time.Duration(random.Int64N(int64(longestUp() / 4))))
		}
		d.stop(unix.SIGKILL)
		d.serve()
		<-answered
		var now api.ApprovalResult
		if d.api(methods.ApprovalGet.Name, map[string]any{"id": asked.ID}, &now); now.Approval.State == api.ApprovalWaits {
			repeated++
			d.ok("approvals", verb, asked.ID)
		}
		line := lead.line()
		count, after := 0, ""
		for {
			var tree api.ChildListResult // a new one: the last part has no next
			d.api(agents.AgentTree.Name, map[string]any{"run": name, "after": after}, &tree)
			for _, child := range tree.Children {
				if child.Name == fmt.Sprintf("c%d", i) {
					count++
				}
			}
			if after = tree.Next; after == "" {
				break
			}
		}
		if count != map[bool]int{true: 1}[allow] || strings.Contains(line, `"error"`) == allow {
			t.Fatalf("round %d of CLOVE_SEED=%d: %d children after %s: %s", i, seed, count, verb, line)
		}
		if allow {
			yes++
			d.clove("wait", childRun(t, line))
		}
		if time.Since(born) > patience() || i == cycles-1 {
			if end := lead.wait(); end.code != 0 {
				t.Errorf("%d %s", end.code, end.stderr)
			}
			lead = nil
		}
	}
	for _, args := range [][]string{{"check"}, {"audit", "verify"}} {
		d.ok(args...)
	}
	d.stop(unix.SIGTERM)
	log := map[string]int{}
	if err := audit.Query(audit.Dir(d.state), audit.Filter{}, func(e audit.Entry) error { log[e.Method+" "+e.Verdict]++; return nil }); err != nil {
		t.Error(err)
	}
	d.serve()
	for what, want := range map[string]int{"agent.spawn ": cycles, "agent.spawn allow": yes, "agent.spawn deny": cycles - yes, "approval.respond allow": cycles} {
		if log[what] != want {
			t.Errorf("the log has %q %d times instead of %d", what, log[what], want)
		}
	}
	t.Logf("%d kills, %d children, %d answers were given again", cycles, yes, repeated)
	if cycles >= 10 && (repeated == 0 || repeated == cycles) {
		t.Errorf("control: %d of %d answers were lost: the moments are wrong", repeated, cycles)
	}
}

// childRun is the id of the run in an answer to agent.spawn.
func childRun(t *testing.T, line string) string {
	t.Helper()
	var answer struct{ Result api.SpawnResult }
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Result.Child.ID == "" {
		t.Fatalf("%s: %v", line, err)
	}
	return string(answer.Result.Child.ID)
}
