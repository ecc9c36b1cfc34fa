//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
)

// Links do not lead the loop outside: neither one that the user's folder has, nor one that the agent
// makes, also when its changes are applied. The host's /etc and the home of another run stay as they are.
// The control is the file that the loop writes in the workspace.
func TestTheLoopFollowsNoLinkOutside(t *testing.T) {
	outside := userDir(t, map[string]string{"file": ""})
	h, asks, folder := newLoopHost(t, outside)
	for _, do := range []error{os.Chmod(outside, 0o777), os.Chmod(filepath.Join(outside, "file"), 0o666), os.Symlink(outside, filepath.Join(folder, "theirs"))} {
		if do != nil {
			t.Fatal(do)
		}
	}
	hostname, err := os.ReadFile("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	if r := h.in(folder, "", "run", "--rm", "--home", "victim", "--", "sh", "-c", "echo mine >~/token"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	r := asks("--name", "links", "Links")
	if r.code != 0 || r.stdout != "tried\n" {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.clove("apply", "--yes", "links"); !strings.Contains(r.stdout, "A /workspace/made") {
		t.Errorf("apply: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if text, _ := os.ReadFile(filepath.Join(folder, "made")); string(text) != "here" {
		t.Errorf("control: %q", text)
	}
	if left := namesIn(t, outside); left != "file" {
		t.Errorf("the host's folder has %v", left)
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "file")); len(text) != 0 {
		t.Errorf("the host's file has %q", text)
	}
	if now, _ := os.ReadFile("/etc/hostname"); string(now) != string(hostname) {
		t.Errorf("the host's name is %q", now)
	}
	if r := h.in(folder, "", "run", "--rm", "--home", "victim", "--", "sh", "-c", "cat ~/token; ls -A ~"); r.stdout != "mine\ntoken\n" {
		t.Errorf("another home: %q, %s", r.stdout, r.stderr)
	}
}

// A command that prints 1 GB has a bounded result, in a sandbox with little memory. The control is how
// many bytes were left out.
func TestTheLoopBoundsResults(t *testing.T) {
	h, asks, _ := newLoopHost(t, "/nowhere")
	r := asks("--name", "much", "--memory", "64M", "Print much")
	if r.code != 0 || r.stdout != "printed\n" {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	kept := h.clove("cat", "much", "/home/agent/.clove/conversation.jsonl").stdout
	if len(kept) > 100_000 || !strings.Contains(kept, "[999967232 bytes left out]") {
		t.Errorf("the conversation has %d bytes: %.300q", len(kept), kept)
	}
}

// While one life of an agent works, another has a copy of its home: it says so, and the conversation of
// the first has nothing of it. The control is a third life after both.
func TestTwoLivesOfOneAgent(t *testing.T) {
	d := newCloved(t)
	config, folder := loopModel(t, "/nowhere")
	d.stop(15)
	d.settings = "models: " + config + "\n"
	d.serve()
	if err := os.WriteFile(filepath.Join(folder, "agent.yaml"), []byte("version: 1\nname: two\nmodel: worker\nhome: kept\nworkspace: .\nnetwork: {mode: none}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.in(folder, "", "ask", "-d", "--name", "first", "agent.yaml", "Sleep")
	d.until("first", "test -s /workspace/made")
	if r := d.in(folder, "", "ask", "--rm", "agent.yaml", "from the second"); r.code != 0 || r.stdout != "I was interrupted\n" || strings.Count(r.stderr, "this one has a copy") != 1 {
		t.Errorf("the second: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	d.ok("rm", "--force", "first")
	if r := d.in(folder, "", "ask", "--rm", "agent.yaml", "from the third"); r.code != 0 || !strings.Contains(r.stderr, "exec was interrupted") {
		t.Errorf("the third: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	r := d.in(folder, "", "run", "--rm", "--workspace", ".", "--home", "two", "--", "cat", "/home/agent/.clove/conversation.jsonl")
	if strings.Contains(r.stdout, "from the second") || !strings.Contains(r.stdout, "from the third") || !strings.Contains(r.stdout, "interrupted") {
		t.Errorf("kept is %s%s", r.stdout, r.stderr)
	}
}

// until waits until a command succeeds in a run.
func (d *cloved) until(run, command string) {
	d.t.Helper()
	for deadline := time.Now().Add(patience()); d.clove("exec", run, "--", "sh", "-c", command).code != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("never true in %s: %s; %s", run, command, d.clove("logs", run).stderr)
		}
	}
}

// A chat with an agent's file on a terminal: the answer comes in pieces, ctrl-C ends an answer and a
// tool but not the chat, and what was used is counted. The control is the answer behind them.
func TestAChatOnATerminal(t *testing.T) {
	h, _, folder := newLoopHost(t, "/nowhere")
	file := filepath.Join(folder, "agent.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nname: talker\nmodel: worker\ninstructions_file: prompt.md\nmax_iterations: 9\nworkspace: .\nnetwork: {mode: none}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "prompt.md"), []byte("be brief\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newPty(h)
	p.begin("chat", "--rm", file)
	p.shows("> ")
	p.types("/tools\r")
	p.shows("write_file ")
	p.shows("> ")
	p.types("Slowly\r")
	p.shows("a word a word")
	p.types("\x03")
	p.shows("[interrupted]")
	p.shows("> ")
	p.types("Sleep\r")
	p.shows("loop: exec")
	p.types("\x03")
	p.shows("[interrupted]")
	p.shows("> ")
	p.types("first words\r")
	p.shows("I was interrupted")
	p.shows("> ")
	p.types("second words\r")
	p.shows("second words\r\n") // as it is typed
	p.shows("second words\r\n")
	p.shows("> ")
	p.types("/cost\r")
	p.shows("3 answers since the start")
	p.shows("> ")
	p.types("\x04")
	if code := p.ends(); code != 0 {
		t.Errorf("exit %d: %s", code, &p.seen)
	}
}

// A stop ends an agent in the middle of an endless answer at once, and the call with it. The control is
// that the call was open.
func TestAStopEndsACallOfTheLoop(t *testing.T) {
	d := newCloved(t)
	config, folder := loopModel(t, "/nowhere")
	d.stop(15)
	d.settings = "models: " + config + "\n"
	d.serve()
	d.ok("ask", "-d", "--name", "slow", "--network", "none", "--model", "worker", "--budget", "tokens=100k", "--workspace", folder, "Slowly")
	reserved := func() (sum int64) {
		t.Helper()
		var all []api.Budget
		if err := json.Unmarshal([]byte(d.ok("budget", "show", "--json", "slow")), &all); err != nil {
			t.Fatal(err)
		}
		for _, line := range all {
			sum += line.Reserved
		}
		return sum
	}
	for deadline := time.Now().Add(patience()); reserved() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no call: %+v", d.clove("logs", "slow"))
		}
	}
	began := time.Now()
	d.ok("stop", "slow")
	if took := time.Since(began); took > patience()/2 || reserved() != 0 {
		t.Errorf("after %s %d tokens are reserved", took, reserved())
	}
	if r := d.clove("why", "slow"); !strings.Contains(r.stdout, "stopped") {
		t.Errorf("%+v", r)
	}
}

// Each step of Clove C++'s run_task is in the audit log as a call of the model, and what was said and
// done, with --model-log, outside of the sandbox. The control is a run without the flag.
func TestTheStepsOfATaskAreKept(t *testing.T) {
	d := newCloved(t)
	config, folder := loopModel(t, "/nowhere")
	d.stop(15)
	d.settings = "models: " + config + "\n"
	d.serve()
	for name, flags := range map[string][]string{"task": {"--model-log"}, "control": nil} {
		r := d.clove(append(append([]string{"ask", "--name", name, "--network", "none", "--model", "worker", "--workspace", folder}, flags...), "--max-iterations", "20", "Create a hello.py and run it")...)
		if r.code != 0 || r.stdout != "It prints Hello, world\n" || !strings.Contains(r.stderr, "loop: answers: 3; tokens: ") {
			t.Fatalf("%s: %d, %s%s", name, r.code, r.stdout, r.stderr)
		}
		if log := d.ok("audit", "query", "--run", string(d.inspected(name).Spec.ID)); strings.Count(log, " model.call ") != 3 || strings.Count(log, " model.settle ") != 3 {
			t.Errorf("%s: %s", name, log)
		}
		said := d.clove("logs", "--models", name).stdout
		for _, step := range []string{"write_file", "python3 hello.py", "[exit status 0]"} {
			if strings.Contains(said, step) != (flags != nil) {
				t.Errorf("%s: %s: %.2000s", name, step, said)
			}
		}
	}
}
