//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// applying writes for each line of its input, the name of a file and a text, and asks about the file. With ! behind the name
// it does not ask: it writes while it waits, in as many bytes and with the same times.
const applying = `
import threading
for line in sys.stdin:
    key, text = line.split()
    name = "/workspace/" + key.rstrip("!")
    with open(name, "w") as f:
        f.write(text)
    os.utime(name, (1, 1))
    if key.endswith("!"):
        print("swapped", flush=True)
        continue
    def ask(key):
        b = calls.Agent()
        while True:
            try:
                answer = b.ask("agent.apply", paths=["/workspace/" + key], why="my notes", key=key)
            except (OSError, ValueError):
                b, answer = calls.Agent(), {"error": {"code": -32005}}
            if answer.get("error", {}).get("code") != -32005:
                break
            time.sleep(0.02)
        print(answer, flush=True)
    threading.Thread(target=ask, args=(key,)).start()
`

// appliesFrom starts an agent that asks for its changes, and returns its workspace too.
func appliesFrom(t *testing.T, d *cloved, name, program string) (*running, string) {
	t.Helper()
	file := without(t, family(t, program, "", "ask: [apply]"))
	dir := filepath.Dir(file)
	before(t, dir)
	return d.start([]string{"--name", name, file}), dir
}

// before writes the file that agents change, as the owner of the folder.
func before(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "notes.txt")
	writeFile(t, file, "before")
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(file, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

func notes(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// An agent's changes come to the host when people have said yes, and not before: they see each one, and its lines. What the
// next agent would follow is left out. The control is the same agent without --ask.
func TestChangesWaitForAYes(t *testing.T) {
	d := newCloved(t)
	const program = `
os.remove("/workspace/worker.py")
for name in "notes.txt", "AGENTS.md":
    with open("/workspace/" + name, "w") as f:
        f.write("after\n")
print(json.dumps(a.ask("agent.apply", key="k", why="it is done")))
`
	lead, dir := appliesFrom(t, d, "lead", "import json\n"+program)
	asked := d.question(t)
	if asked.Kind != api.ApproveApply || asked.Says != "it is done" || !strings.HasSuffix(asked.What, " changes to "+dir) || asked.Changes == nil {
		t.Errorf("%+v", asked)
	}
	shown := d.ok("approvals", "show", asked.ID)
	for _, part := range []string{`"changed file /workspace/notes.txt, 6 bytes, mode 0644"`, `"deleted file /workspace/worker.py"`, "; left out: ", "-before\n", "+after\n"} {
		if !strings.Contains(strings.ReplaceAll(shown, "deleted file /workspace/worker.py", `"deleted file /workspace/worker.py"`), part) {
			t.Errorf("%q is not in %s", part, shown)
		}
	}
	if notes(t, dir) != "before" {
		t.Error("it was written without a yes")
	}
	d.ok("approvals", "allow", asked.ID)
	line := lead.line()
	var answer struct{ Result api.OwnApplyResult }
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Result.Applied < 2 || answer.Result.Refused != 1 || answer.Result.Left[0].Path != "/workspace/AGENTS.md" {
		t.Errorf("%v: %s", err, line)
	}
	if notes(t, dir) != "after\n" {
		t.Error("it was not written")
	}
	for _, name := range []string{"worker.py", "AGENTS.md"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if end := lead.wait(); end.code != 0 {
		t.Errorf("%d %s", end.code, end.stderr)
	}
	control := without(t, family(t, "import json\n"+program, "", "agent_socket: true"))
	if out := d.ok("run", "--rm", "--name", "control", control); !strings.Contains(out, "-32004") || !strings.Contains(out, "the run asks none") {
		t.Errorf("control: %q", out)
	}
}

// What people saw is what is written: a file that the agent changes while they look has their yes refused, also where it has
// as many bytes and the same times. The control changes nothing meanwhile. A kill of cloved between the question and the
// answer changes nothing.
func TestNoFileIsSwappedBeforeItIsApplied(t *testing.T) {
	d := newCloved(t)
	lead, dir := appliesFrom(t, d, "lead", applying)
	written := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // none if it is not there
		return string(text)
	}
	fmt.Fprintln(lead.stdin, "control SAFE")
	d.ok("approvals", "allow", d.question(t).ID)
	if line := lead.line(); !strings.Contains(line, "'applied': 1") || written("control") != "SAFE" {
		t.Errorf("control: %s, %q", line, written("control"))
	}
	fmt.Fprintln(lead.stdin, "attack SAFE")
	asked := d.question(t)
	fmt.Fprintln(lead.stdin, "attack! EVIL")
	if line := lead.line(); line != "swapped" {
		t.Errorf("%q", line)
	}
	if r := d.clove("approvals", "show", asked.ID); !strings.Contains(r.stderr, "the files are not those of this question any more") || strings.Contains(r.stdout, "EVIL") {
		t.Errorf("%+v", r)
	}
	d.ok("approvals", "allow", asked.ID)
	if line := lead.line(); !strings.Contains(line, "others by now") || written("attack") != "" {
		t.Errorf("%s, %q", line, written("attack"))
	}
	fmt.Fprintln(lead.stdin, "killed SAFE")
	asked = d.question(t)
	d.stop(unix.SIGKILL)
	d.serve()
	d.ok("approvals", "allow", asked.ID)
	if line := lead.line(); !strings.Contains(line, "'applied': 1") || written("killed") != "SAFE" {
		t.Errorf("%s, %q", line, written("killed"))
	}
	fmt.Fprintln(lead.stdin, "denied EVIL")
	d.ok("approvals", "deny", "--reason", "not this", d.question(t).ID)
	if line := lead.line(); !strings.Contains(line, "not this") || written("denied") != "" {
		t.Errorf("%s, %q", line, written("denied"))
	}
	if end := lead.wait(); end.code != 0 {
		t.Errorf("%d %s", end.code, end.stderr)
	}
}

// Changes are written with the rights of the run's owner, also where root says yes.
func TestChangesAreWrittenAsTheOwner(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	for name, owner := range map[string]int{"attack": 0, "control": memberUID} {
		file := without(t, family(t, "open('/workspace/new.txt', 'w').write('after')\nprint(a.ask('agent.apply', key='k', paths=['/workspace/new.txt']), flush=True)\n", "", "ask: [apply]"))
		dir := filepath.Dir(file)
		if err := os.Chown(dir, memberUID, memberUID); err != nil {
			t.Fatal(err)
		}
		if r := d.as(memberUID, group, "run", "-d", "--name", name, file); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		asked := d.question(t)
		if err := os.Chown(dir, owner, owner); err != nil { // the member may not write into it any more
			t.Fatal(err)
		}
		d.ok("approvals", "allow", asked.ID)
		d.as(memberUID, group, "wait", name)
		out := d.as(memberUID, group, "logs", name).stdout
		info, err := os.Stat(filepath.Join(dir, "new.txt"))
		if name == "attack" && (err == nil || !strings.Contains(out, "permission denied")) || name == "control" && (err != nil || info.Sys().(*syscall.Stat_t).Uid != memberUID) {
			t.Errorf("%s: %v, %+v, %s", name, err, info, out)
		}
	}
}

// A question about a call of the agent's is on the run's terminal too, a session that is attached is told of it, and
// --on-ask answers it.
func TestCallsAreAskedAboutWhereConnectionsAre(t *testing.T) {
	h, d, _ := asksIn(t, groupName, false)
	program := "open('/workspace/notes.txt', 'w').write('after')\nprint('answer', a.ask('agent.apply', key='k', paths=['/workspace/notes.txt']), flush=True)\n"
	start := func(t *testing.T) (file, dir string) {
		file = without(t, family(t, program, "", "ask: [apply]"))
		before(t, filepath.Dir(file))
		return file, filepath.Dir(file)
	}
	for _, flags := range [][]string{nil, {"-t"}} {
		file, dir := start(t)
		p := newPty(h)
		p.run(append(flags, file)...)
		p.shows("changed file /workspace/notes.txt")
		p.types("y " + p.code() + "\r")
		p.shows("'applied': 1")
		if status := p.ends(); status != 0 || notes(t, dir) != "after" {
			t.Errorf("%v: %d, %q", flags, status, &p.seen)
		}
	}

	file, dir := start(t)
	script := filepath.Join(t.TempDir(), "answer")
	key := filepath.Join(filepath.Dir(script), "key")
	for path, text := range map[string]string{key: "0123456789abcdef", script: `#!/bin/sh
proof=$(printf 'clove-approval-1\n%s\n%s\n%s\nallow\n' "$CLOVE_APPROVAL" "$CLOVE_DIGEST" "$CLOVE_EXPIRES" | openssl dgst -sha256 -hmac "$(cat ` + key + `)" -r)
echo "{\"answer\":\"allow\",\"hmac\":\"${proof%% *}\"}"
`} {
		if err := os.WriteFile(path, []byte(text), map[bool]os.FileMode{true: 0o700, false: 0o600}[path == script]); err != nil {
			t.Fatal(err)
		}
	}
	d.ok("run", "-d", "--name", "answered", "--on-ask", script, "--on-ask-key", key, file)
	d.ok("wait", "answered")
	if out := d.ok("logs", "answered"); !strings.Contains(out, "'applied': 1") || notes(t, dir) != "after" {
		t.Errorf("%s", out)
	}

	file, _ = start(t)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "lead.py"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(filepath.Dir(file), "lead.py"), "import sys\nsys.stdin.readline()\n"+string(text))
	d.ok("run", "-d", "-i", "--name", "watched", file)
	session := d.command(t.Context(), "attach", "watched")
	stdin, err := session.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	session.Stderr = &said
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(stdin)
	asked := d.question(t)
	d.ok("approvals", "allow", asked.ID)
	stdin.Close()
	if err := session.Wait(); err != nil || !strings.Contains(said.String(), "clove approvals allow "+asked.ID) {
		t.Errorf("%v: %s", err, said.String())
	}
	if record := d.inspect("watched").Record; record.Asked == nil || record.Asked.Questions != 1 || record.Asked.Allowed != 1 {
		t.Errorf("%+v", record.Asked)
	}
}
