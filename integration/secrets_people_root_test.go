//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

const withToken = `curl -sS -m 60 -H "Authorization: Bearer $T" https://api.example.com`

// With --ask secret each request that is to carry a secret waits for people's yes, which is for this method, host and path; cloved may be
// killed meanwhile. What they refuse is a denial. The control is a run with a grant, which is not asked.
func TestPeopleAreAskedBeforeAUse(t *testing.T) {
	d, _, got := secretHost(t)
	d.keeps("TOKEN")
	flags := []string{"run", "-d", "--allow", "api.example.com", "--secret", "TOKEN:env=T", "--ask", "secret"}
	d.ok(append(flags, "--name", "granted", "--grant", "secret:TOKEN", "--", "sh", "-c", withToken+"/repos/granted")...)
	d.ok("wait", "granted")
	if all := got(); len(all) != 1 || !strings.HasSuffix(all[0], secretValue+" ") || strings.TrimSpace(d.ok("approvals", "list", "--json")) != "[]" {
		t.Fatalf("control: %q", all)
	}
	d.ok(append(flags, "--name", "asks", "--", "sh", "-c", withToken+"/repos/a; "+withToken+"/repos/a; "+withToken+"/repos/b")...)
	asked := d.question(t)
	if asked.Kind != api.ApproveSecret || asked.What != "use the secret TOKEN: GET https://api.example.com/repos/a" {
		t.Fatalf("%+v", asked)
	}
	if shown := d.ok("approvals", "show", asked.ID); !strings.Contains(shown, "clove grant give asks secret:TOKEN") || !strings.Contains(shown, "whatever is in their body") {
		t.Errorf("%s", shown)
	}
	d.stop(unix.SIGKILL)
	d.serve()
	if all := got(); len(all) != 1 || d.question(t).ID != asked.ID {
		t.Errorf("before the yes the server got %q", all)
	}
	d.ok("approvals", "allow", "--once", asked.ID)
	var second api.Approval
	until(t, "the second request is a question", func() bool { second = d.question(t); return second.ID != asked.ID })
	if all := got(); len(all) != 2 || second.What != asked.What {
		t.Errorf("%q, %+v", all, second)
	}
	d.ok("approvals", "allow", second.ID)
	until(t, "the third request is a question", func() bool { return strings.HasSuffix(d.question(t).What, "/repos/b") })
	d.ok("approvals", "deny", "--reason", "not b", d.question(t).ID)
	d.ok("wait", "asks")
	if all := got(); len(all) != 3 {
		t.Errorf("%q", all)
	}
	if out, why := d.ok("logs", "asks"), d.ok("why", "asks"); !strings.Contains(out, "not b") || !strings.Contains(why, "not b") || strings.Contains(out, secretValue) {
		t.Errorf("%s\n%s", out, why)
	}
}

// A start does not wait for people: a secret that the agent is to read needs a grant where uses are asked about, and without one nothing
// is made.
func TestASecretToReadIsNotAskedAbout(t *testing.T) {
	d, _, _ := secretHost(t)
	d.keeps("TOKEN", "--plain")
	r := d.clove("run", "--name", "reads", "--ask", "secret", "--secret", "TOKEN:plain", "--", "true")
	if r.code == 0 || !strings.Contains(r.stderr, "add --grant secret:TOKEN") || d.ok("ps", "-aq") != "" {
		t.Errorf("%+v, %q", r, d.ok("ps", "-a"))
	}
	d.ok("run", "--ask", "secret", "--grant", "secret:*", "--secret", "TOKEN:plain", "--", "true")
}

// An agent's child gets a secret that the agent has, or has a grant of, and no other one of its owner's: that is refused, and nothing is
// started. A revoked grant ends the uses of a run that goes on.
func TestAChildHasTheSecretsOfItsParent(t *testing.T) {
	d, _, got := secretHost(t)
	d.keeps("TOKEN")
	d.keeps("OTHER")
	d.keeps("PASSED")
	dir := userDir(t, map[string]string{
		"calls.py":    calls,
		"worker.py":   "import os\nos.execvp('sh', ['sh', '-c', '" + withToken + "/repos/child'])\n",
		"worker.yaml": "version: 1\nname: worker\nscript: worker.py\nlimits: {memory: 128M, pids: 32, disk: 32M}\nnetwork: {mode: allowlist, allow: [api.example.com]}\nsecrets: [TOKEN:env=T]\n",
		"other.yaml":  "version: 1\nname: other\nscript: worker.py\nlimits: {memory: 128M, pids: 32, disk: 32M}\nnetwork: {mode: allowlist, allow: [api.example.com]}\nsecrets: [OTHER:env=T]\n",
		"passed.yaml": "version: 1\nname: passed\nscript: worker.py\nlimits: {memory: 128M, pids: 32, disk: 32M}\nnetwork: {mode: allowlist, allow: [api.example.com]}\nsecrets: [PASSED:env=T]\n",
		"lead.py": "import calls, os, sys, time\na = calls.Agent()\n" + `
print(a.ask("agent.spawn", manifest="other")["error"]["message"], flush=True)
for name in ["worker", "passed"]:
    a.call("agent.spawn", manifest=name, name=name)
    print(a.call("agent.wait", child=name)["record"]["exit_code"], flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.05)
os.system('` + withToken + `/repos/lead')
`,
		"lead.yaml": "version: 1\nname: lead\nscript: lead.py\nspawn: [worker.yaml, other.yaml, passed.yaml]\ngrants: [\"secret:PASSED\"]\nnetwork: {mode: allowlist, allow: [api.example.com]}\nsecrets: [TOKEN:env=T]\n",
	})
	if err := os.Chmod(filepath.Join(dir, "lead.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.ok("run", "-d", "--name", "lead", filepath.Join(dir, "lead.yaml"))
	until(t, "the child has ended", func() bool { return strings.Contains(d.ok("logs", "lead"), "\n0\n0\n") })
	if all := got(); len(all) != 2 || all[0] != "GET /repos/child Bearer "+secretValue+" " {
		t.Errorf("the server got %q", all)
	}
	if out := d.ok("logs", "lead"); !strings.Contains(out, "the child would have more than its parent: OTHER:env=T") {
		t.Errorf("%s", out)
	}
	for _, line := range strings.Split(d.ok("grant", "list", "lead"), "\n") {
		if strings.Contains(line, "secret:TOKEN") {
			d.ok("grant", "revoke", "lead", strings.Fields(line)[0])
		}
	}
	d.ok("exec", "lead", "touch", "/tmp/go")
	d.ok("wait", "lead")
	if all, out := got(), d.ok("logs", "lead"); len(all) != 2 || !strings.Contains(out, "the secret TOKEN may not be used") {
		t.Errorf("%q\n%s", all, out)
	}
}
