//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/loop/order"
)

// loopScript has the answers of the model "worker" to each prompt of the tests. %s is a file of
// the host's that everyone may write.
const loopScript = `
turns:
- match: Sum up what matters
  text: SUMMARY
- match: SUMMARY
  echo: true
- match: Grow
  tool_calls: [{name: exec, arguments: {command: "echo Grow; seq 1000"}}]
- match: Create a hello.py
  tool_calls: [{name: write_file, arguments: {path: hello.py, content: "print('Hello, ' + 'world')\n"}}]
- match: Go out
  tool_calls: [{name: write_file, arguments: {path: "%[1]s", content: "was here"}}, {name: exec, arguments: {command: "echo was here > %[1]s"}}, {name: done, arguments: {answer: tried}}]
- match: Links
  tool_calls:
  - {name: exec, arguments: {command: "ln -s %[1]s ours; ln -s %[1]s/file direct; echo x >/etc/hostname; mkdir -p /home/other; echo x >/home/agent/token; echo x >../../..%[1]s/up; true"}}
  - {name: write_file, arguments: {path: theirs/new, content: x}}
  - {name: write_file, arguments: {path: ours/new, content: x}}
  - {name: write_file, arguments: {path: direct, content: x}}
  - {name: write_file, arguments: {path: /etc/hostname, content: x}}
  - {name: write_file, arguments: {path: "../../..%[1]s/above", content: x}}
  - {name: edit, arguments: {path: theirs/file, old: x, new: y}}
  - {name: write_file, arguments: {path: made, content: here}}
  - {name: done, arguments: {answer: tried}}
- match: Print much
  tool_calls: [{name: exec, arguments: {command: "head -c 1000000000 /dev/zero | tr '\\0' x"}}]
- match: bytes left out
  tool_calls: [{name: done, arguments: {answer: printed}}]
- match: Slowly
  text: "a word "
  chunk: 7
  pace: 20ms
  endless: true
- match: Sleep
  tool_calls: [{name: exec, arguments: {command: "echo made >> made; sleep 600"}}]
- match: Flood
  text: "0123456789012345678901234567890123456789012345678901234567890123456789"
  chunk: 60000
  endless: true
- match: "wrote 27 bytes"
  tool_calls: [{name: exec, arguments: {command: python3 hello.py}}]
- match: Hello, world
  tool_calls: [{name: done, arguments: {answer: "It prints Hello, world"}}]
- match: interrupted
  text: I was interrupted
- match: Again
  tool_calls: [{name: list, arguments: {}}]
- match: hello.txt
  tool_calls: [{name: list, arguments: {}}]
- echo: true
`

// loopModel is the configuration of a model with that script, and a folder to work on.
func loopModel(t *testing.T, outside string) (config, folder string) {
	t.Helper()
	dir := t.TempDir()
	for path := dir; path != "/" && path != "/tmp"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder = filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	script, config := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "models.yaml")
	for path, text := range map[string]string{script: fmt.Sprintf(loopScript, outside), filepath.Join(folder, "hello.txt"): "hello\n",
		config: "providers:\n  s: {script: " + script + ", users: ['*']}\nmodels:\n  worker: {targets: [{provider: s, model: worker}]}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return config, folder
}

// newLoopHost is a host whose commands know the model.
func newLoopHost(t *testing.T, outside string) (h *host, asks func(args ...string) result, folder string) {
	h = newHost(t)
	config, folder := loopModel(t, outside)
	t.Setenv("CLOVE_MODELS", config)
	return h, func(args ...string) result {
		return h.clove(append([]string{"ask", "--network", "none", "--model", "worker", "--workspace", folder}, args...)...)
	}, folder
}

// Clove C++'s run_task: a file is made and run in few iterations. The folder has it when it is
// applied, and not before.
func TestTheLoopDoesATask(t *testing.T) {
	h, asks, folder := newLoopHost(t, "/nowhere")
	r := asks("--name", "task", "--max-iterations", "20", "Create a hello.py and run it")
	if r.code != 0 || r.stdout != "It prints Hello, world\n" || !strings.Contains(r.stderr, "clove apply task writes it back") {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(folder, "hello.py")); err == nil {
		t.Error("the folder was changed")
	}
	if r := h.clove("apply", "--yes", "task"); r.code != 0 {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	if text, _ := os.ReadFile(filepath.Join(folder, "hello.py")); string(text) != "print('Hello, ' + 'world')\n" {
		t.Errorf("%q", text)
	}
	if r := asks("--rm", "what?"); r.code != 0 || r.stdout != "what?\n" || strings.Contains(r.stderr, "hint") {
		t.Errorf("an answer without a tool: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// A prompt cannot make the loop write outside of its sandbox, to a file that everyone may write. The
// control: the same answers write to it where the user shows it to the agent.
func TestTheLoopWritesNothingOutside(t *testing.T) {
	dir, err := os.MkdirTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "file")
	os.Chmod(dir, 0o777)
	os.WriteFile(file, nil, 0o666)
	os.Chmod(file, 0o666)
	_, asks, _ := newLoopHost(t, file)
	if r := asks("--rm", "Go out"); r.code != 0 || r.stdout != "tried\n" {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if text, _ := os.ReadFile(file); len(text) != 0 {
		t.Errorf("the host's file has %q", text)
	}
	if r := asks("--rm", "-v", dir+":"+dir, "Go out"); r.code != 0 {
		t.Fatalf("control: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if text, _ := os.ReadFile(file); string(text) != "was here\n" {
		t.Errorf("control: the host's file has %q", text)
	}
}

// An answer without an end is refused at its bound, in a sandbox with little memory. Iterations
// and budgets end the loop.
func TestTheLoopEnds(t *testing.T) {
	_, asks, _ := newLoopHost(t, "/nowhere")
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--memory", "64M", "Flood"}, 4, "larger than 1048576 bytes"},
		{[]string{"--max-iterations", "5", "Again"}, 3, "has had all its answers: 5"},
		{[]string{"--budget", "tokens=100", "--at-end", "refuse", "Again"}, 5, "100 of 100 free"},
		{[]string{"--budget", "tokens=100", "Again"}, 137, "budget of 100 tokens"},
		{[]string{"--budget", "tokens=100k", "what?"}, 0, ""}, // the control
		{[]string{}, 125, "one prompt"},
		{[]string{"--context", "10", "x"}, 125, "number of tokens"},
	} {
		if r := asks(append([]string{"--rm"}, row.args...)...); r.code != row.code || !strings.Contains(r.stderr, row.want) {
			t.Errorf("%v: exit %d, %s%s", row.args, r.code, r.stdout, r.stderr)
		}
	}
}

// killLoop kills clove-loop from inside.
const killLoop = `for p in /proc/[0-9]*; do if tr '\0' ' ' < $p/cmdline | grep -q "^` + order.Program + ` "; then kill -9 ${p#/proc/}; fi; done`

// The loop is killed in the middle of a command, and a restart goes on with the conversation: the
// command is not made again, and its result is that it was interrupted.
func TestTheLoopGoesOnAfterAKill(t *testing.T) {
	d := newCloved(t)
	config, folder := loopModel(t, "/nowhere")
	d.stop(15)
	d.settings = "models: " + config + "\n"
	d.serve()
	d.ok("ask", "-d", "--name", "sleeper", "--restart", "on-failure", "--network", "none", "--model", "worker", "--workspace", folder, "Sleep")
	for deadline := time.Now().Add(patience()); d.clove("exec", "sleeper", "--", "test", "-s", "/workspace/made").code != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the command was not made: %s", d.ok("logs", "sleeper"))
		}
	}
	d.clove("exec", "sleeper", "--", "sh", "-c", killLoop)
	d.ok("wait", "sleeper")
	r := d.clove("logs", "sleeper")
	if all := r.stdout + r.stderr; !strings.Contains(all, "I was interrupted") || !strings.Contains(all, "going on after 1 answers") {
		t.Errorf("%s", all)
	}
	if made := d.ok("cat", "sleeper", "made"); made != "made\n" {
		t.Errorf("the command was made again: %q", made)
	}
}

// A conversation that is full is summed up by the model, which goes on with its task and finds all of
// it in a file.
func TestTheLoopSumsUp(t *testing.T) {
	h, asks, _ := newLoopHost(t, "/nowhere")
	r := asks("--name", "long", "--context", "2000", "Grow until it is full")
	if r.code != 0 || !strings.Contains(r.stdout, "Grow until it is full") || !strings.Contains(r.stdout, "SUMMARY") || !strings.Contains(r.stderr, "conversation.1.jsonl has them") {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if kept := h.clove("cat", "long", "/home/agent/.clove/conversation.1.jsonl").stdout; !strings.Contains(kept, `998\n999`) || !strings.Contains(kept, "Grow until") {
		t.Errorf("kept is %.500q", kept)
	}
	if now := h.clove("cat", "long", "/home/agent/.clove/conversation.jsonl").stdout; strings.Contains(now, `998\n999`) {
		t.Errorf("the conversation is still %.500q", now)
	}
}

// A chat takes prompts from its input, and goes on behind each.
func TestAChat(t *testing.T) {
	h, _, folder := newLoopHost(t, "/nowhere")
	r := h.cloveWith("/tools\nfirst words\nCreate a hello.py\n/cost\n/quit\nnever\n", "chat", "--rm", "--network", "none", "--model", "worker", "--workspace", folder)
	for _, want := range []string{"write_file ", "first words\n", "It prints Hello, world\n", "4 answers since the start"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("without %q: exit %d, %s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	if r.code != 0 || strings.Contains(r.stdout, "never") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// The program has no library, so that it starts in any root.
func TestTheLoopIsStatic(t *testing.T) {
	h := newHost(t)
	if out, err := exec.Command("ldd", filepath.Join(h.bin, "clove-loop")).CombinedOutput(); err == nil {
		t.Errorf("%s", out)
	}
}
