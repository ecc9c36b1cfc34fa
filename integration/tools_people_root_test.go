//go:build root

package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
)

// With --ask tool a call of a tool that may change something waits until people have seen it and said yes, and runs once by that. What they
// refuse, the agent reads with the reason. The controls: a tool that changes nothing is not asked about, and neither is a run without --ask.
func TestPeopleAreAskedBeforeACall(t *testing.T) {
	d := newCloved(t)
	dir := userDir(t, map[string]string{"calls.py": calls, "a.py": `import calls, os
a = calls.Agent()
a.call("tool.call", tool="list", arguments={"path": "/tmp"})
print("listed", flush=True)
def append(): return a.ask("tool.call", tool="exec", arguments={"argv": ["sh", "-c", "echo a >> /tmp/a"]})
print("result" in append(), len(open("/tmp/a").readlines()), flush=True)
answer = append()
print(answer["error"]["message"] if "error" in answer else "done", len(open("/tmp/a").readlines()), flush=True)
`})
	flags := []string{"run", "-d", "--network=none", "--grant=tool:*", "--grant=tool:exec"}
	d.ok(append(flags, "--name=control", filepath.Join(dir, "a.py"))...)
	d.ok("wait", "control")
	if out := d.ok("logs", "control"); out != "listed\nTrue 1\ndone 2\n" || strings.TrimSpace(d.ok("approvals", "list", "--json")) != "[]" {
		t.Fatalf("control: %q", out)
	}
	d.ok(append(flags, "--name=asks", "--ask=tool", filepath.Join(dir, "a.py"))...)
	asked := d.question(t)
	if asked.Kind != api.ApproveTool || asked.What != "call the tool exec" || !slices.Equal(asked.Shown, []string{`arguments: {"argv":["sh","-c","echo a >> /tmp/a"]}`}) {
		t.Fatalf("%+v", asked)
	}
	if shown := d.ok("approvals", "show", asked.ID); !strings.Contains(shown, `"arguments: {\"argv\":[\"sh\",\"-c\",\"echo a >> /tmp/a\"]}"`) || !strings.Contains(shown, "a yes lets it call this tool with exactly these arguments, and nothing else") {
		t.Errorf("%s", shown)
	}
	if out := d.ok("logs", "asks"); out != "listed\n" || d.clove("exec", "asks", "test", "-e", "/tmp/a").code == 0 {
		t.Errorf("before the answer: %q", out)
	}
	d.ok("approvals", "allow", "--once", asked.ID)
	var second api.Approval
	until(t, "the second call is a question", func() bool { second = d.question(t); return second.ID != asked.ID })
	d.ok("approvals", "deny", "--reason", "once is enough", second.ID)
	d.ok("wait", "asks")
	if out := d.ok("logs", "asks"); out != "listed\nTrue 1\npeople refused it: once is enough 1\n" {
		t.Errorf("%q", out)
	}
	// Without a sandbox that has tools there is nothing to ask about.
	if r := d.clove("run", "--ask=tool", "--", "true"); r.code == 0 || !strings.Contains(r.stderr, "add --grant tool:NAME") {
		t.Errorf("%+v", r)
	}
}
