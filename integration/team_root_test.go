//go:build root

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/testhost"
)

// teamIn writes a team's file.
func teamIn(t *testing.T, text string) string {
	t.Helper()
	return filepath.Join(userDir(t, map[string]string{"team.yaml": "version: 1\nextends: sandboxed\n" + text}), "team.yaml")
}

// three are agents that come one after the other.
const three = `agents:
  plan: {command: [sh, -c, "echo planned"]}
  work: {command: [sh, -c, "echo worked"], depends_on: {plan: ended}}
  report: {command: [sh, -c, "echo reported"], depends_on: {work: ended}}
`

// members are the runs of a team.
func (d *cloved) members(team string) (runs []agent.Run) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.ok("ps", "-a", "--json", "--filter", "team="+team)), &runs); err != nil {
		d.t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b agent.Run) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return runs
}

// Each agent begins behind the one that it depends on, a second up changes nothing, and down leaves
// nothing. The control of the order is a team without dependencies, whose agents run at the same time.
func TestTeamRunsInOrder(t *testing.T) {
	d := newCloved(t)
	file := teamIn(t, "name: paper\n"+three)
	if out := d.ok("up", file); out != "plan   | planned\nwork   | worked\nreport | reported\n" {
		t.Errorf("%q", out)
	}
	first := d.members("paper")
	d.ok("up", "-d", file)
	again := d.members("paper")
	for i, run := range again {
		if run.Record == nil || run.Record.ExitCode != 0 || run.Spec.ID != first[i].Spec.ID || run.Queue.Starts != 1 || run.Spec.Kernel.Namespace != "paper" {
			t.Errorf("%+v", run)
		}
	}
	// In the order of names: plan, report, work.
	if len(again) != 3 || again[2].Started.Before(again[0].Record.Ended) || again[1].Started.Before(again[2].Record.Ended) {
		t.Errorf("they did not wait: %+v", again)
	}
	if logs := d.ok("logs", "-f", "paper"); strings.Count(logs, " | ") != 3 || !strings.Contains(logs, "work   | worked\n") {
		t.Errorf("%q", logs)
	}
	if out := d.ok("down", "paper"); out != "paper.report\npaper.work\npaper.plan\n" {
		t.Errorf("%q", out)
	}
	if left := d.ok("ps", "-aq"); left != "" {
		t.Errorf("left: %q", left)
	}
	meet := `sh, -c, "touch /data/$CLOVE_NAME; while [ $(ls /data | wc -l) -lt 2 ]; do sleep 0.05; done"`
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	both := ""
	for _, name := range []string{"a", "b"} {
		both += fmt.Sprintf("  %s: {command: [%s], files: {volumes: [\"%s:/data\"]}}\n", name, meet, dir)
	}
	d.ok("up", teamIn(t, "name: free\nagents:\n"+both))
}

// What comes after a failure never starts, one line says so, and the status is that of the failure.
// Up again starts it all where the failure is gone, and refuses a file that says something else.
func TestTeamWithAFailure(t *testing.T) {
	d := newCloved(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	text := "name: fails\nagents:\n  a: {command: [sh, -c, \"test -e /data/mended || exit 3\"], files: {volumes: [\"" + dir + ":/data\"]}}\n" +
		"  b: {command: [echo, b], depends_on: {a: ended}}\n  c: {command: [echo, c], depends_on: {b: ended}}\n"
	file := teamIn(t, text)
	r := d.clove("up", file)
	if r.code != 3 || strings.Contains(r.stdout, "b | b") || strings.Count(r.stderr, "fails.b, fails.c cannot start behind fails.a") != 1 {
		t.Errorf("%d, %q, %q", r.code, r.stdout, r.stderr)
	}
	for _, run := range d.members("fails") {
		if run.State != agent.StateEnded || run.Spec.Name != "fails.a" && !run.Started.IsZero() {
			t.Errorf("%+v", run)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := d.ok("up", file); !strings.HasSuffix(out, "b | b\nc | c\n") {
		t.Errorf("%q", out)
	}
	before := d.members("fails")
	if err := os.WriteFile(file, []byte("version: 1\nextends: sandboxed\n"+strings.Replace(text, "[echo, b]", "[echo, B]", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := d.clove("up", file); r.code != 1 || !strings.Contains(r.stderr, "not as in "+file+": fails.b\n") {
		t.Errorf("%d, %q", r.code, r.stderr)
	}
	if out := d.ok("up", "--replace", file); out != "fails.c\nfails.b\nb | B\nc | c\n" {
		t.Errorf("%q", out)
	}
	if after := d.members("fails"); after[0].Spec.ID != before[0].Spec.ID || after[1].Spec.ID == before[1].Spec.ID || after[2].Spec.ID == before[2].Spec.ID {
		t.Errorf("%+v", after)
	}
	// A run of this name that is none of the team's is left alone.
	d.ok("down", file)
	d.detach("fails.c", "true")
	if r := d.clove("up", "-d", file); r.code != 1 || len(d.members("fails")) != 0 || !strings.Contains(r.stderr, "not the team's") {
		t.Errorf("%d, %q", r.code, r.stderr)
	}
}

// Ready is what the agent says, or a command inside: what comes after it waits for that. The control
// waits for the start alone, and is too early. One that is not ready in its time is ended.
func TestTeamWaitsUntilReady(t *testing.T) {
	d := newCloved(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	const says = `import os, socket, time
while not os.path.exists("/data/go"): time.sleep(0.05)
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["CLOVE_AGENT_SOCKET"])
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"agent.ready"}\n'); s.recv(999); time.sleep(1000)`
	shared := ", files: {volumes: [\"" + dir + ":/data\"]}"
	script, _ := json.Marshal(says)
	file := teamIn(t, "name: ready\nagents:\n  says: {command: [python3, -c, "+string(script)+"]"+shared+"}\n"+
		"  asked: {command: [sleep, \"1000\"], ready: [test, -e, /data/go]"+shared+"}\n"+
		"  first: {command: [sh, -c, \"test ! -e /data/go && touch /data/early /data/go\"]"+shared+", depends_on: {says: started, asked: started}}\n"+
		"  last: {command: [ls, /data], depends_on: {says: ready, asked: ready}"+shared+"}\n")
	d.ok("up", "-d", file)
	d.ok("wait", "ready.first", "ready.last")
	if out := d.ok("logs", "ready.last"); out != "early\ngo\n" {
		t.Errorf("%q", out)
	}
	d.ok("down", "-t", "0", "ready")
	late := teamIn(t, "name: late\nagents:\n  never: {command: [sleep, \"1000\"], ready: [\"false\"], ready_timeout: 2s}\n  behind: {command: [\"true\"], depends_on: {never: ready}}\n")
	if r := d.clove("up", late); r.code != 137 || !strings.Contains(r.stderr, "not ready within 2s") || !strings.Contains(r.stderr, "late.behind cannot start") {
		t.Errorf("%d, %q", r.code, r.stderr)
	}
}

// ctrl-c ends the agents in the reverse order of their starts, and clove up behind them.
func TestTeamEndsBySignal(t *testing.T) {
	d := newCloved(t)
	file := teamIn(t, "name: long\nagents:\n  a: {command: [sleep, \"1000\"]}\n  b: {command: [sh, -c, \"echo runs; exec sleep 1000\"], depends_on: {a: started}}\n  c: {command: [\"true\"], depends_on: {b: ended}}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience())
	defer cancel()
	cmd := d.command(ctx, "up", file)
	out, _ := cmd.StdoutPipe()
	if err := d.begin(cmd); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "b | runs\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v", cmd.ProcessState)
	}
	runs := d.members("long")
	for _, run := range runs {
		if run.State != agent.StateEnded {
			t.Errorf("%s is %s", run.Spec.Name, run.State)
		}
	}
	if len(runs) != 3 || runs[1].Record.Ended.After(runs[0].Record.Ended) || runs[2].Record.Ended.After(runs[1].Record.Ended) {
		t.Errorf("%+v", runs)
	}
}

// The sum that three agents spend together never passes the team's budget, by no millionth of a
// dollar, with 64 calls at once and a provider that uses all that was reserved. The control is the
// same team with a budget that is large enough: its calls cost more together.
func TestTeamKeepsItsBudget(t *testing.T) {
	const most = 20_000 // millionths of a dollar
	p := newProvider(t)
	maximum := regexp.MustCompile(`"max(?:_completion)?_tokens":(\d+)`)
	var release chan struct{}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		found := maximum.FindSubmatch(body)
		if found == nil {
			t.Errorf("a call without a maximum: %s", body)
			return
		}
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.Replace(answerOfProvider, `"completion_tokens":5`, `"completion_tokens":`+string(found[1]), 1))
	})
	d := p.serves(t)
	spend := func(name, limit string) (used int64, served int) {
		release = make(chan struct{})
		text := "name: " + name + "\nbudgets: [cost=" + limit + "]\nat_end: refuse\nagents:\n"
		for i, count := range []int{22, 21, 21} {
			script, _ := json.Marshal(askScript + strings.Replace(callsAtOnce, `"messages": said}`, `"messages": said, "max_tokens": 500}`, 1) + fmt.Sprintf("at_once(%d)\n", count))
			text += fmt.Sprintf("  a%d: {extends: standard, command: [python3, -c, %s], models: [small]}\n", i, script)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*patience())
		defer cancel()
		d.ok("up", "-d", teamIn(t, text))
		cmd := d.command(ctx, "logs", "-f", name)
		out, _ := cmd.StdoutPipe()
		if err := d.begin(cmd); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for sent := 0; lines.Scan(); {
			if strings.HasSuffix(lines.Text(), " | sent") {
				if sent++; sent == 3 {
					close(release)
				}
				continue
			}
			served += strings.Count(lines.Text(), " 200")
		}
		cmd.Wait()
		var line api.Budget // what an ended run has reserved is settled just behind its end
		for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
			var accounts []api.Budget
			if err := json.Unmarshal([]byte(d.ok("budget", "list", "--json", "ns:"+name)), &accounts); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(accounts, func(b api.Budget) bool { return b.Account == "0/ns:"+name && b.Dimension == "cost_micros" })
			if line = accounts[at]; line.Reserved == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v", line)
			}
		}
		if used = line.Used; line.Peak != line.Used {
			t.Errorf("%+v", line)
		}
		d.ok("down", name)
		return used, served
	}
	used, served := spend("tight", "0.02usd")
	if each := int64(7 + 2*500); used > most || used < most-2*each || int64(served)*each != used {
		t.Errorf("%d of %d are used by %d calls", used, most, served)
	}
	if used, served := spend("wide", "1usd"); used <= most || served != 64 {
		t.Errorf("control: %d used by %d calls", used, served)
	}
}

// However cloved is killed while a team comes up, the same up ends in the same state: each agent has
// run once, in order.
func TestTeamAfterKills(t *testing.T) {
	d := newCloved(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	text := "name: killed\nbudgets: [reviews=5]\nagents:\n"
	for i, name := range []string{"plan", "work", "report"} {
		text += fmt.Sprintf("  %s: {command: [sh, -c, \"echo %[1]s >>/data/order\"], files: {volumes: [\"%s:/data\"]}", name, dir)
		text += []string{"}\n", ", depends_on: {plan: ended}}\n", ", depends_on: {work: ended}}\n"}[i]
	}
	file, order := teamIn(t, text), filepath.Join(dir, "order")
	began := time.Now()
	d.ok("up", file)
	whole := time.Since(began)
	cycles, failed := numberOf(t, "CLOVE_CYCLES", testhost.Sample(200, 10, 5)), 0
	for i := range cycles {
		d.ok("down", file)
		if err := os.Remove(order); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience())
		up := d.command(ctx, "up", "-d", file)
		if err := d.begin(up); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i) / time.Duration(cycles)) // the moment is what is tried
		d.stop(unix.SIGKILL)
		if up.Wait() != nil {
			failed++
		}
		cancel()
		d.serve()
		d.ok("up", file)
		runs := d.members("killed")
		for _, run := range runs {
			if run.State != agent.StateEnded || run.Record.Status != agent.StatusExited || run.Record.ExitCode != 0 {
				t.Fatalf("cycle %d: %+v, %+v", i, run, run.Record)
			}
		}
		written, err := os.ReadFile(order)
		if err != nil || string(written) != "plan\nwork\nreport\n" || len(runs) != 3 {
			t.Fatalf("cycle %d: %q, %v, %d runs", i, written, err, len(runs))
		}
		if list := d.ok("budget", "list", "ns:killed"); !strings.Contains(list, "reviews") {
			t.Fatalf("cycle %d: %q", i, list)
		}
	}
	t.Logf("%d kills, of which %d ended clove up, over %v", cycles, failed, whole)
	if failed == 0 {
		t.Error("control: no kill came before the end of clove up: the moments are wrong")
	}
	d.ok("down", file)
	if r := d.clove("check"); r.code != 0 {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

// The worked example of the manual, and the example's team, do what they say.
func TestTeamOfTheManual(t *testing.T) {
	d := newCloved(t)
	page, err := os.ReadFile("../docs/teams.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "    $ cat team.yaml\n")
	example, rest, _ := strings.Cut(rest, "    $ sudo clove up team.yaml\n")
	shown, _, found := strings.Cut(rest, "    $ ")
	if !found {
		t.Fatal("the page has no example")
	}
	plain := func(text string) string { return strings.ReplaceAll("\n"+text, "\n    ", "\n")[1:] }
	file := filepath.Join(userDir(t, map[string]string{"team.yaml": plain(example)}), "team.yaml")
	if out := d.ok("up", file); out != plain(shown) {
		t.Errorf("%q, the page has %q", out, plain(shown))
	}
	d.ok("down", "paper")
}

// The report of the team in examples/team is the same when one of its workers is killed in the middle.
func TestTheTeamOfTheExample(t *testing.T) {
	d := newCloved(t)
	d.ok("queue", "add", "--namespace", "notes", "topics")
	const file = "../examples/team/team.yaml"
	want := "What agents need to know of budgets.\nWhat agents need to know of limits.\nWhat agents need to know of mail.\nWhat agents need to know of networks.\n"
	for _, killed := range []bool{false, true} { // the first is the control
		d.ok("up", "-d", file)
		if killed {
			until(t, "a worker has a job", func() bool { return strings.Contains(d.clove("logs", "notes.work-1").stdout, "has ") })
			d.ok("kill", "notes.work-1")
		}
		d.ok("wait", "notes.report")
		if got := d.ok("logs", "notes.report"); got != want {
			t.Errorf("killed %t: %q", killed, got)
		}
		d.ok("down", "notes")
	}
	if out := d.ok("jobs", "list", "--namespace", "notes", "--state", "done", "--json"); strings.Count(out, `"attempts": 1`) != 7 || strings.Count(out, `"attempts": 2`) != 1 {
		t.Errorf("%s", out)
	}
}
