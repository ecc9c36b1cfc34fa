//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/internal/testhost"
)

// calls is a module for scripts that call clove over the agent's own socket.
const calls = `import json, os, socket

class Agent:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["CLOVE_AGENT_SOCKET"])
        self.lines, self.number = self.socket.makefile("rw"), 0

    def ask(self, method, **params):
        self.number += 1
        self.lines.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}) + "\n")
        self.lines.flush()
        while True:
            answer = json.loads(self.lines.readline())
            if answer.get("id") == self.number:
                return answer

    def call(self, method, **params):
        answer = self.ask(method, **params)
        if "error" in answer:
            raise SystemExit("refused: " + answer["error"]["message"])
        return answer["result"]
`

// family writes a parent's and a child's manifest with their scripts, and returns the parent's.
func family(t *testing.T, lead, worker string, keys ...string) string {
	t.Helper()
	dir := userDir(t, map[string]string{
		"calls.py": calls, "lead.py": "import calls, os, sys, time\na = calls.Agent()\n" + lead, "worker.py": "import calls, os, sys, time\na = calls.Agent()\n" + worker,
		"worker.yaml": "version: 1\nname: worker\nscript: worker.py\nagent_socket: true\nlimits: {memory: 64M, pids: 32, disk: 32M}\n",
		"lead.yaml":   "version: 1\nname: lead\nscript: lead.py\nspawn: [worker.yaml]\n" + strings.Join(keys, "\n") + "\n",
	})
	return filepath.Join(dir, "lead.yaml")
}

// A parent starts children from a manifest, and gets their output and results. All of it is in the audit
// log, under the parent's name.
func TestAgentsStartAgents(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
kids = [a.call("agent.spawn", manifest="worker", name="w%d" % i, args=[str(i)])["child"] for i in range(3)]
for i in range(3):
    end = a.call("agent.wait", child="w%d" % i)
    print(end["record"]["exit_code"], end["output"].strip(), end["result"], end["child"]["parent"] == os.environ["CLOVE_ID"])
print(len(a.call("agent.list")["children"]), a.ask("agent.spawn", manifest="other")["error"]["code"])
`, `
print("worker", sys.argv[1])
a.call("agent.result", result={"double": 2 * int(sys.argv[1])})
`)
	if out := d.ok("run", "--name", "lead", file); out != "0 worker 0 {'double': 0} True\n0 worker 1 {'double': 2} True\n0 worker 2 {'double': 4} True\n3 -32004\n" {
		t.Errorf("%q", out)
	}
	var tree api.ChildListResult
	d.api(agents.AgentTree.Name, map[string]any{"run": "lead"}, &tree)
	if len(tree.Children) != 3 || tree.Children[0].Status != string(agent.StatusExited) {
		t.Errorf("%+v", tree)
	}
	if log := d.ok("audit", "query", "--json"); strings.Count(log, `"method":"agent.spawn"`) != 4 || !strings.Contains(log, "worker@sha256:") {
		t.Errorf("%s", log)
	}
}

// shared shows a folder that everybody may write to both agents of a family at /data.
func shared(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"worker.yaml", "lead.yaml"} {
		path := filepath.Join(filepath.Dir(file), name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(text, []byte("files: {volumes: [\""+dir+":/data\"]}\n")...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// touch makes a file that an agent waits for.
func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A file of a manifest that is another one than when it was added is not started. The control is the
// spawn before.
func TestAChangedScriptIsNotStarted(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
a.call("agent.spawn", manifest="worker", name="first")
print(a.call("agent.wait", child="first")["output"].strip(), flush=True)
while not os.path.exists("/data/go"): time.sleep(0.05)
print(a.ask("agent.spawn", manifest="worker")["error"]["message"], flush=True)
`, `print("as added")`)
	dir := shared(t, file)
	d.ok("run", "-d", "--name", "lead", file)
	logs := d.follow("logs", "-f", "lead")
	if line := logs.line(); line != "as added" {
		t.Fatal(line)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "worker.py"), []byte("print('another')"), 0o644); err != nil {
		t.Fatal(err)
	}
	touch(t, dir, "go")
	if line := logs.line(); !strings.Contains(line, "worker.py is another file than when its manifest was added") {
		t.Error(line)
	}
	d.ok("wait", "lead")
	if runs := strings.Fields(d.ok("ps", "-aq")); len(runs) != 2 {
		t.Errorf("%q", runs)
	}
}

// A script that is changed between a spawn and a start of its child is not executed. The control is a start
// with the script as it was added.
func TestAScriptThatChangesAfterTheSpawnIsNotStarted(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
a.call("agent.spawn", manifest="worker", name="one")
time.sleep(1000)
`, "print(\"as added\", flush=True)\ntime.sleep(1000)")
	d.ok("run", "-d", "--name", "lead", file)
	child := d.running("lead", 1)[0].Run
	began := d.inspected(child).Started
	says := func(starts int) { // each when it has read the script
		t.Helper()
		until(t, fmt.Sprint("starts that say so: ", starts), func() bool { return strings.Count(d.ok("logs", child), "as added\n") == starts })
	}
	says(1)
	d.ok("restart", "-t", "0", child)
	if again := d.inspected(child); !again.Started.After(began) {
		t.Errorf("control: it began at %s, and then at %s", began, again.Started)
	}
	says(2)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "worker.py"), []byte("print('another', flush=True)"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := d.clove("restart", "-t", "0", child); r.code == 0 || !strings.Contains(r.stderr, "worker.py is another file than when its manifest was added") {
		t.Errorf("%d, %q", r.code, r.stderr)
	}
	if record := d.inspected(child).Record; record == nil || record.Status != agent.StatusStartFailed {
		t.Errorf("%+v", record)
	}
	if out := d.ok("logs", child); strings.Contains(out, "another\n") {
		t.Errorf("the changed script was executed: %q", out)
	}
}

// A call that waits is answered once, also when cloved is killed meanwhile. The control is a call that
// does not wait: it is answered with busy.
func TestAWaitSurvivesCloved(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
a.call("agent.spawn", manifest="worker", name="one")
print("waits", flush=True)
print(a.call("agent.wait", child="one")["result"], flush=True)
a.socket.settimeout(0.5)
try:
    print("again", a.socket.recv(1))
except TimeoutError:
    print("once")
`, `
while not os.path.exists("/data/go"): time.sleep(0.05)
while "error" in a.ask("agent.result", result=7, key="k"): time.sleep(0.1)
`)
	dir := shared(t, file)
	d.ok("run", "-d", "--name", "lead", file)
	logs := d.follow("logs", "-f", "lead")
	if line := logs.line(); line != "waits" {
		t.Fatal(line)
	}
	for range 3 { // the first may come into the child's start
		d.stop(unix.SIGKILL)
		time.Sleep(300 * time.Millisecond)
		d.serve()
	}
	touch(t, dir, "go")
	ended := d.clove("wait", "lead")
	if out := d.clove("logs", "lead"); ended.code != 0 || out.stdout != "waits\n7\nonce\n" {
		t.Errorf("%d, %q, %q", ended.code, out.stdout, out.stderr)
	}
}

// Agents that start themselves without end are as many as the first one's budget of children says, at
// every depth, and what they are refused is a refusal: all go on, and cloved answers. The control is the
// same bomb with a larger budget.
func TestAForkBombOfAgents(t *testing.T) {
	d := newCloved(t)
	for _, most := range []int{3, 6} {
		name := fmt.Sprintf("bomb%d", most)
		file := family(t, `
a.call("agent.spawn", manifest="worker")
for _ in range(600):
    live = [c for c in a.call("agent.tree")["children"] if c["state"] == "running"]
    if len(live) >= `+fmt.Sprint(most)+`: break
    time.sleep(0.1)
time.sleep(1)
print(len([c for c in a.call("agent.tree")["children"] if c["state"] != "ended"]))
`, `
while True:
    answer = a.ask("agent.spawn", manifest="worker")
    if "error" in answer: time.sleep(0.05)
`, "spawn_depth: 8", fmt.Sprintf("budgets: [children=%d]", most))
		worker := filepath.Join(filepath.Dir(file), "worker.yaml")
		text, err := os.ReadFile(worker)
		if err == nil {
			// What is below one shares its limits: they are no bound here.
			sheet := strings.Replace(string(text), "memory: 64M, pids: 32, disk: 32M", "memory: 400M, pids: 200", 1)
			err = os.WriteFile(worker, []byte(sheet+"grants: [\"spawn:worker\"]\nspawn_depth: 8\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out := d.ok("run", "--name", name, file); out != fmt.Sprintln(most) {
			t.Errorf("%d may live: %q", most, out)
		}
		// They end with the first one.
		for deadline := time.Now().Add(patience()); ; time.Sleep(50 * time.Millisecond) {
			if left := d.ok("ps", "-q"); left == "" {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("left: %q", left)
			}
		}
	}
}

// Where the supervisor of a parent is killed, its children end, also while no cloved runs. The control is a
// parent whose children may go on.
func TestChildrenEndWithAKilledSupervisor(t *testing.T) {
	d := newCloved(t)
	const sleeps = "time.sleep(1000)"
	lead := `
for i in range(2): a.call("agent.spawn", manifest="worker")
` + sleeps
	for i := range testhost.Sample(100, 10, 3) {
		for _, keep := range []bool{false, true} {
			if keep && i > 0 {
				continue
			}
			var keys []string
			if keep {
				keys = []string{"orphans: keep"}
			}
			name := fmt.Sprintf("lead%d%t", i, keep)
			d.ok("run", "-d", "--name", name, family(t, lead, sleeps, keys...))
			children := d.running(name, 2)
			if i%2 == 0 {
				d.stop(unix.SIGKILL)
			}
			if err := unix.Kill(d.inspected(name).Lease.SupervisorPID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				time.Sleep(500 * time.Millisecond) // only the children's supervisors act
				d.serve()
			}
			for _, child := range children {
				if keep {
					if run := d.inspected(child.Run); run.State != agent.StateRunning {
						t.Errorf("%s: an orphan that may go on is %s", name, run.State)
					}
					d.ok("stop", "-t", "0", child.Run)
					continue
				}
				d.clove("wait", child.Run)
				if run := d.inspected(child.Run); run.Record.Status != agent.StatusKilled || run.Record.Error == nil || run.Record.Error.Step != agent.StepParent {
					t.Errorf("%s: %+v", name, run.Record)
				}
			}
			d.clove("wait", name)
			d.ok("rm", name)
		}
	}
	if left := d.ok("ps", "-aq"); left != "" {
		t.Errorf("left: %q", left)
	}
}

// running waits until so many children of a run execute.
func (d *cloved) running(name string, number int) []api.Child {
	d.t.Helper()
	var tree api.ChildListResult
	until(d.t, "the children run", func() bool {
		d.api(agents.AgentTree.Name, map[string]any{"run": name}, &tree)
		live := 0
		for _, child := range tree.Children {
			if child.State == agent.StateRunning {
				live++
			}
		}
		return live == number
	})
	return tree.Children
}

// Before a parent begins another life its children have ended, and it has no children then. It is not
// removed while one lives.
func TestARestartedParentHasNoChildren(t *testing.T) {
	d := newCloved(t)
	d.ok("run", "-d", "--name", "lead", family(t, `
a.call("agent.spawn", manifest="worker")
time.sleep(1000)
`, "time.sleep(1000)"))
	first := d.running("lead", 1)[0]
	d.ok("restart", "-t", "0", "lead")
	before, lead := d.inspected(first.Run), d.inspected("lead")
	if before.State != agent.StateEnded || before.Record.Ended.After(lead.Started) {
		t.Errorf("%+v\n%+v", before, lead)
	}
	second := d.running("lead", 1)[0]
	if second.ID == first.ID {
		t.Error("the child of an earlier life is one of this")
	}
	if r := d.clove("rm", "lead"); r.code == 0 {
		t.Error("a parent is removed while it lives")
	}
	d.ok("stop", "-t", "0", "lead")
	d.ok("rm", "lead")
	if left := d.ok("ps", "-aq"); left != "" {
		t.Errorf("left: %q", left)
	}
}

// The ended children of a parent with --rm go with it. The control is a parent without.
func TestChildrenOfARemovedParent(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
a.call("agent.spawn", manifest="worker", name="one")
print(a.call("agent.wait", child="one")["record"]["exit_code"])
`, "pass")
	for _, c := range []struct {
		flags []string
		left  int
	}{{[]string{"--name=kept"}, 2}, {[]string{"--rm", "--name=gone"}, 0}} {
		if out := d.ok(append(append([]string{"run"}, c.flags...), file)...); out != "0\n" {
			t.Errorf("%q", out)
		}
		if runs := strings.Fields(d.ok("ps", "-aq")); len(runs) != c.left {
			t.Errorf("%q: %q", c.flags, runs)
		}
		for _, run := range strings.Fields(d.ok("ps", "-aq", "--filter", "name=kept")) {
			d.ok("rm", run)
		}
	}
	if layers, err := os.ReadDir(filepath.Join(d.state, "layers")); err == nil && len(layers) != 0 {
		t.Errorf("%d layers are left", len(layers))
	}
}

// A signal that comes while its child is being started is not lost: it is kept until the agent runs. The children are
// signalled at once, with cloved's own call and with their parent's.
func TestASignalMeetsAStart(t *testing.T) {
	d := newCloved(t)
	d.ok("run", "-d", "--name", "lead", family(t, `
for i in range(6):
    child = a.call("agent.spawn", manifest="worker", name="w%d" % i)["child"]["id"]
    time.sleep(i * 0.03)
    a.call("agent.signal", child=child, signal="KILL")
a.call("agent.spawn", manifest="worker", name="user")
time.sleep(1000)
`, "time.sleep(1000)"))
	var tree api.ChildListResult
	until(t, "seven children are there", func() bool {
		d.api(agents.AgentTree.Name, map[string]any{"run": "lead"}, &tree)
		return len(tree.Children) == 7
	})
	i := slices.IndexFunc(tree.Children, func(c api.Child) bool { return c.Name == "user" })
	until(t, "it is no longer queued", func() bool {
		r := d.clove("inspect", string(tree.Children[i].ID)) // which is there a moment later
		return r.code == 0 && !strings.Contains(r.stdout, `"state": "queued"`)
	})
	d.ok("kill", "-s", "KILL", string(tree.Children[i].ID))
	until(t, "all have ended", func() bool {
		d.api(agents.AgentTree.Name, map[string]any{"run": "lead"}, &tree)
		return !slices.ContainsFunc(tree.Children, func(c api.Child) bool { return c.State != agent.StateEnded })
	})
}

// The event of an end names the call that ended the run, by the id that the audit log has, or the parent that ended
// before. The control is a child that ends by itself.
func TestTheCausesOfEnds(t *testing.T) {
	d := newCloved(t)
	d.ok("run", "-d", "--name", "lead", family(t, `
for name in ["signalled", "killed", "itself", "left"]: a.call("agent.spawn", manifest="worker", name=name, args=[name])
a.call("agent.wait", child="itself")
a.call("agent.signal", child="signalled", signal="KILL")
a.call("agent.wait", child="signalled")
time.sleep(1000)
`, `if sys.argv[1] != "itself": time.sleep(1000)`))
	runs := map[string]agent.ID{"lead": d.inspected("lead").Spec.ID}
	until(t, "two children have ended", func() bool {
		var tree api.ChildListResult
		d.api(agents.AgentTree.Name, map[string]any{"run": "lead"}, &tree)
		ended := 0
		for _, child := range tree.Children {
			runs[child.Name] = child.ID
			if child.State == agent.StateEnded {
				ended++
			}
		}
		return len(tree.Children) == 4 && ended == 2
	})
	d.ok("kill", "-s", "KILL", string(runs["killed"]))
	d.clove("wait", string(runs["killed"]))
	d.ok("stop", "-t", "0", "lead")
	d.clove("wait", string(runs["left"]))
	calls := map[string]string{} // ids, by the method and the run that it is about, or that calls
	log := ""
	until(t, "the log has the stop, which it gets behind the answer", func() bool {
		log = d.ok("audit", "query", "--json")
		return strings.Contains(log, `"method":"run.stop"`)
	})
	for line := range strings.Lines(log) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		calls[e.Method+" "+string(e.Run)] = e.Correlation
	}
	want := map[agent.ID][2]string{runs["itself"]: {}, runs["left"]: {string(runs["lead"]), ""}}
	for name, call := range map[string]string{"signalled": "agent.signal " + string(runs["lead"]), "killed": "run.signal " + string(runs["killed"]), "lead": "run.stop " + string(runs["lead"])} {
		if id := calls[call]; id == "" {
			t.Errorf("%s: no id of %s in %v", name, call, calls)
		} else {
			want[runs[name]] = [2]string{id, id}
		}
	}
	seen, traced := 0, ""
	for line := range strings.Lines(d.ok("events", "--after", "0", "--once", "--json")) {
		var e agent.RunEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == agent.RunQueued && e.Parent != "" && traced == "" {
			traced = d.ok("trace", fmt.Sprint(e.Sequence))
		}
		if e.Kind != agent.RunEnded {
			continue
		}
		if seen++; [2]string{e.Causation, e.Correlation} != want[e.ID] {
			t.Errorf("%s: %q, %q, want %q", e.Name, e.Causation, e.Correlation, want[e.ID])
		}
	}
	if seen != 5 {
		t.Errorf("%d ends", seen)
	}
	for _, step := range []string{"queued", "agent.spawn", "started", "run.start"} { // from a child to the user
		if !strings.Contains(traced, step) {
			t.Errorf("%s is no step of\n%s", step, traced)
		}
	}
}

// A child whose deadline comes while it is queued ends then, and never starts. The control's parent has no limit of
// time: its child waits as long, and starts. The limited one's goes on without its parent, whose end may come a moment earlier.
func TestADeadlineComesInTheQueue(t *testing.T) {
	d := newCloved(t)
	const lead = `
while not os.path.exists("/data/go"): time.sleep(0.01)
a.call("agent.spawn", manifest="worker")
time.sleep(1000)
`
	limited, control := family(t, lead, "print('ran')", "limits: {timeout: 3s}", "orphans: keep"), family(t, lead, "print('ran')")
	folders := []string{shared(t, limited), shared(t, control)}
	d.ok("run", "-d", "--name", "limited", limited)
	d.ok("run", "-d", "--name", "control", control)
	d.ok("drain")
	child := func(of string, state agent.State) agent.Run {
		var tree api.ChildListResult
		until(t, of+"'s child is "+string(state), func() bool {
			d.api(agents.AgentTree.Name, map[string]any{"run": of}, &tree)
			// A spawn is answered before its run is in the queue.
			return len(tree.Children) == 1 && tree.Children[0].State == state && d.clove("inspect", tree.Children[0].Run).code == 0
		})
		return d.inspected(tree.Children[0].Run)
	}
	for _, dir := range folders {
		touch(t, dir, "go")
	}
	deadline := child("limited", agent.StateQueued).Deadline
	child("control", agent.StateQueued)
	run := child("limited", agent.StateEnded)
	if r := run.Record; r.Status != agent.StatusTimeout || r.ExitCode != agent.ExitTimeout || r.Limit != nil || r.Error == nil || r.Error.Step != agent.StepDeadline || r.Ended.Before(deadline) || !run.Started.IsZero() {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	if text := d.ok("why", run.Spec.Name); !strings.Contains(text, "was not started: ") {
		t.Errorf("%s", text)
	}
	child("control", agent.StateQueued)
	d.ok("drain", "--undo")
	if r := child("control", agent.StateEnded).Record; r.Status != agent.StatusExited || r.ExitCode != 0 {
		t.Errorf("the control: %+v, %+v", r, r.Error)
	}
	d.ok("stop", "-t", "0", "control")
}
