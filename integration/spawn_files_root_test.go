//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A child gets files of its parent's before it executes, and what it changes comes back: of a live one, and of
// one that has ended, by the name that its parent gave it, once for a key. What names no descendant, or a path
// that is taken, is refused and changes nothing; so is a spawn whose files are not there.
func TestFilesBetweenAgents(t *testing.T) {
	d := newCloved(t)
	file := family(t, `
w = "/workspace/"
os.mkdir(w + "task")
open(w + "task/todo", "w").write("read this")
def spawn(name, source):
    return a.ask("agent.spawn", manifest="worker", name=name, files=[{"from": source, "to": w + "in/task"}])
print(spawn("none", w + "absent")["error"]["message"], flush=True)
print(spawn("bad", w + "task/../../etc/shadow").get("error", {}).get("code"), flush=True)
child = spawn("kid", w + "task")["result"]["child"]
while not os.path.exists("/data/ready"): time.sleep(0.05)
first = dict(child="kid", path=w + "from/kid", key="one")
one = a.call("agent.collect", **first)
print(one["files"], one["missing"], one["left"][0]["path"], a.call("agent.collect", **first) == one)
print(open(w + "from/kid/workspace/report").read(), os.stat(w + "from/kid").st_uid)
for wrong in [dict(child="kid", path=w + "from/kid"), dict(child="kid", path="/etc/new"), dict(child="kid", path="relative"),
              dict(child=os.environ["CLOVE_ID"], path=w + "x"), dict(child="other", path=w + "x"), dict(child="kid", path=w + "x", paths=["/workspace/none"])]:
    print("error" in a.ask("agent.collect", **wrong), end=" ")
print([n for n in sorted(os.listdir(w)) if n in ("from", "late", "task", "x")])
open("/data/go", "w")
a.call("agent.wait", child="kid")
print(a.call("agent.collect", child=child["id"], path=w + "ended", paths=["/workspace/report"])["files"], os.listdir(w + "ended/workspace"), flush=True)
open("/data/ended", "w")
while not os.path.exists("/data/removed"): time.sleep(0.05)
print(a.ask("agent.collect", child="kid", path=w + "late")["error"]["message"])
`, `
open("/workspace/report", "w").write(open("/workspace/in/task/todo").read().replace("read", "did"))
os.mkfifo("/workspace/pipe")
open("/data/ready", "w")
while not os.path.exists("/data/go"): time.sleep(0.05)
`)
	dir := shared(t, file)
	d.ok("run", "-d", "--name", "lead", file)
	logs := d.follow("logs", "-f", "lead")
	var lines []string
	for range 6 {
		lines = append(lines, logs.line())
	}
	got := strings.Join(lines, "\n")
	for i, want := range []string{"cannot copy /workspace/absent", "-3200", " 1 /workspace/pipe True", "did this 1000",
		"True True True True True True ['from', 'task']", "1 ['report']"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, not %q:\n%s\n%s", i, lines[i], want, got, d.log())
		}
	}
	for _, name := range strings.Fields(d.ok("ps", "-a", "--format", "{{.Names}}")) {
		if strings.HasPrefix(name, "worker-") {
			d.ok("rm", name)
		}
	}
	touch(t, dir, "removed")
	if line := logs.line(); !strings.Contains(line, "was removed with its files") {
		t.Errorf("%q", line)
	}
	d.ok("wait", "lead")
	allowed := 0
	for _, line := range strings.Split(d.ok("audit", "query", "--json"), "\n") {
		if strings.Contains(line, `"method":"agent.collect"`) && strings.Contains(line, `"verdict":"allow"`) {
			allowed++
		}
	}
	if allowed != 2 {
		t.Errorf("the audit log has %d copies", allowed)
	}
	if left, _ := os.ReadDir(filepath.Join(d.state, "spools")); len(left) != 0 {
		t.Errorf("spools are left: %v", left)
	}
}
