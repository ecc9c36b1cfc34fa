//go:build root

package integration

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// withSDK are the flags of a run whose agent may import the Python client.
func withSDK(t *testing.T, flags ...string) []string {
	t.Helper()
	folder, err := filepath.Abs("../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"-v", folder + ":/opt/sdk:ro", "-e", "PYTHONPATH=/opt/sdk"}, flags...)
}

// exampleOf is a script, and so stands before the agent's words.
func exampleOf(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../examples", file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The examples of docs/sdk-python.md, each in a sandbox.
func TestPythonExamples(t *testing.T) {
	h := newHost(t)
	h.agent(withSDK(t, "--budget", "tokens=1000", "--at-end", "refuse", exampleOf(t, "budget_agent.py"))).want(t, agent.StatusExited, 0,
		"chapter One took 260 tokens\nchapter Two took 240 tokens\nchapter Three took 310 tokens\nchapter Four has to wait: budget\n"+
			"warned: tokens reached 800\nused 810 of 1000 tokens\n")
	h.agent(withSDK(t, "--grant", "tool:fetch", exampleOf(t, "grant_agent.py"))).want(t, agent.StatusExited, 0,
		"tool:fetch: yes\ntool:write: no\nderived tool:fetch for 1 use\nmore than that: denied\nrevoked 1, left 1\n")
}

// python3 -m clove spends 800, 150 and 100 of 1000 tokens, and the run ends with the last of
// them. The control: one token less than 1000 does not end it.
func TestPythonCommandLineSpends(t *testing.T) {
	h := newHost(t)
	flags := withSDK(t, "--grant", "tool:fetch", "--budget", "tokens=1000")
	spend := func(amounts string) result {
		return h.agent(flags, "sh", "-c", `
			python3 -m clove grant check tool:fetch >/dev/null; echo fetch $?
			python3 -m clove grant check tool:write >/dev/null; echo write $?
			python3 -m clove grant chek 2>/dev/null; echo usage $?
			for n in `+amounts+`; do python3 -m clove budget charge tokens=$n >/dev/null || exit 9; done
			case '`+amounts+`' in *999*) ;; *) sleep 1000 ;; esac`)
	}
	const checks = "fetch 0\nwrite 1\nusage 2\n"
	spend("999").want(t, agent.StatusExited, 0, checks)
	r := spend("800 150 100")
	r.want(t, agent.StatusBudget, 137, checks)
	if l := r.record.Limit; l == nil || l.Name != "tokens" || l.Value != 1000 || l.Peak == nil || *l.Peak != 1050 {
		t.Errorf("the record's limit is %+v", l)
	}
}

// A run that shares nothing has no socket, and the client says how to get one.
func TestPythonWithoutASocket(t *testing.T) {
	r := newHost(t).agent(withSDK(t), "python3", "-m", "clove", "agent", "get")
	r.want(t, agent.StatusExited, 1, "")
	if !strings.Contains(r.stderr, "--agent-socket") {
		t.Errorf("stderr is %q", r.stderr)
	}
}

// An agent charges one token 60 times while cloved is killed twice. Each is counted once.
func TestPythonClientOutlastsCloved(t *testing.T) {
	d := newCloved(t)
	r := d.start(withSDK(t, "--budget", "tokens=1000"), "python3", "-u", "-c", `
import clove
with clove.connect(patience=600) as agent:
    for i in range(60):
        agent.budget.charge({"tokens": 1})
        print(i)
        if i in (20, 40): input()
    print(*(b.used for b in agent.budget.get().budgets if b.dimension == "tokens"))
`)
	for range 2 {
		for at := ""; at != "20" && at != "40"; {
			at = r.line()
		}
		d.stop(unix.SIGKILL)
		if _, err := r.stdin.Write([]byte("\n")); err != nil { // the next charge finds no cloved
			t.Fatal(err)
		}
		d.serve()
	}
	end := r.wait()
	if end.code != 0 || !strings.HasSuffix(end.stdout, "59\n60\n") {
		t.Errorf("exit %d, %q\n%s", end.code, end.stdout, end.stderr)
	}
}
