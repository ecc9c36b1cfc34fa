//go:build root

package integration

import (
	"os"
	"strings"
	"testing"
)

// fetches is an agent that asks for what others keep, and prints what it gets: the text of a file, or the
// code of an error.
const fetches = `
import calls, os
a = calls.Agent()
def get(n, keeper, at, to=None):
    to = to or "/workspace/got%d" % n
    r = a.ask("agent.fetch", keeper=keeper, **{"from": at, "path": to})
    if "error" in r:
        return r["error"]["code"], r["error"]["message"]
    return sorted(os.path.relpath(os.path.join(d, f), to) for d, _, fs in os.walk(to) for f in fs)
asked = [("noter", "/memory/fact"), ("noter", "/memory/good"), ("noter", "/memory/dir/secret"), ("noter", "/memory/bad"), ("noter", "/home/agent/secret"), ("noter", "/memory/../home/agent"),
         ("noter", "/other"), ("none", "/memory/fact"), ("apart", "/memory/fact"), ("plain", "/memory/fact"), ("other", "/memory/fact"), ("noter", "/memory/good", "/etc/new")]
for n, row in enumerate(asked):
    print(n, get(n, *row))
print(open("/workspace/got0/memory/fact").read().strip(), os.stat("/workspace/got0/memory/fact").st_uid)
`

// An agent reads what a live run of its namespace keeps, with a grant for it, and nothing else of that run: not
// its home, nothing that a link leads to, and nothing of a run of another namespace, one that keeps nothing
// or one that is not there, which are refused alike. It writes nothing there. The controls are the file, and
// the same agent without the grant.
func TestAnAgentReadsWhatAnotherKeeps(t *testing.T) {
	d := newCloved(t)
	folder := userDir(t, map[string]string{"calls.py": calls, "reader.py": fetches})
	const writes = "umask 022; echo learnt >/memory/fact; mkdir -p /memory/good /memory/bad ~/x; echo s >~/secret; ln -s ~ /memory/dir; ln -s ~/secret /memory/good/link; cp /bin/true /memory/good/su; chmod 4755 /memory/good/su; mkfifo /memory/bad/pipe; sleep 600"
	for name, flags := range map[string][]string{"noter": {"--home", "noter", "--keep", "/memory", "--keep", "/other"}, "apart": {"--home", "apart", "--keep", "/memory", "--namespace", "acme"}, "other": {"--home", "other", "--keep", "/memory"}} {
		if r := d.in(folder, "", append(append([]string{"run", "-d", "--name", name}, flags...), "--", "sh", "-c", writes)...); r.code != 0 {
			t.Fatal(r.stderr)
		}
		d.ok("exec", name, "--", "sh", "-c", "until test -p /memory/bad/pipe; do sleep 0.1; done")
	}
	d.ok("run", "-d", "--name", "plain", "--", "sh", "-c", "mkdir /memory; sleep 600")
	read := func(grants ...string) []string {
		line := []string{"run", "-d", "--name", "reader", "--agent-socket"}
		for _, g := range grants {
			line = append(line, "--grant", g)
		}
		if r := d.in(folder, "", append(line, "reader.py")...); r.code != 0 {
			t.Fatal(r.stderr)
		}
		d.in(folder, "", "wait", "reader")
		out := d.in(folder, "", "logs", "reader")
		d.ok("rm", "reader")
		return strings.Split(out.stdout+out.stderr, "\n")
	}
	lines := read("file:noter:/memory", "file:none:/memory", "file:apart:/memory", "file:plain:/memory", "file:/", "file:noter:/home/agent:rw")
	for i, want := range []string{
		"0 ['memory/fact']", "1 ['memory/good/link', 'memory/good/su']", "2 (-32", "left out: memory/bad/pipe", "4 (-32", "5 (-32",
		"6 (-32", "no run 'none' keeps", "no run 'apart' keeps", "no run 'plain' keeps", "10 (-32", "11 (-32", "learnt 1000",
	} {
		want = strings.ReplaceAll(want, "'", `"`)
		if i >= len(lines) || !strings.Contains(strings.ReplaceAll(lines[i], "'", `"`), want) {
			t.Errorf("line %d is not %q:\n%s\n%s", i, want, strings.Join(lines, "\n"), d.log())
			break
		}
	}
	for i, line := range read("file:/:rw", "file:other:/memory")[:10] {
		if !strings.Contains(line, "(-32") || strings.Contains(line, "keeps") {
			t.Errorf("control: without a grant, line %d is %q", i, line)
		}
	}
	if left, err := os.ReadDir(d.state + "/spools"); err == nil && len(left) != 0 {
		t.Errorf("spools are left: %v", left)
	}
	for _, run := range []string{"noter", "apart", "other", "plain"} {
		d.ok("rm", "--force", run)
	}
}
