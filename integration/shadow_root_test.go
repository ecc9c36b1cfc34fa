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

	"clove.run/clove/agent"
)

// policyFile writes a document that extends standard.
func policyFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte("version: 1\nname: "+name+"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// refusedWords are refusals without their times.
func refusedWords(all []agent.Denial) (words []string) {
	for _, d := range all {
		words = append(words, fmt.Sprintf("%s %s %s %d", d.Kind, d.Target, d.Rule, d.Count))
	}
	slices.Sort(words)
	return words
}

// visits asks once for a name, without a library that would ask again, and connects to addresses
// that the agent knows.
const visits = `
import socket
def query(name):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    s.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x01\x00\x01", ("127.0.0.11", 53))
    return s.recv(999)[3] & 15
def connect(address, port):
    try:
        s = socket.create_connection((address, port), 10)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        text = s.recv(99)
        return "reached" if text and b"403" not in text else "refused"
    except OSError:
        return "refused"
print(query("api.example.com"), query("db.example.com"), query("evil.example.net"))
print([connect("151.101.1.69", 80) for _ in range(3)], connect("93.184.216.35", 22))
`

const visitor = `widen: {network: a test}
network:
  mode: allowlist
  allow: ["151.101.1.69:80", "93.184.216.35:22", api.example.com, db.example.com]
`

const strictVisitor = `widen: {network: a test}
network:
  mode: allowlist
  allow: ["93.184.216.35:22", api.example.com]
limits: {output: 20}
`

// A shadow refuses nothing, and says exactly what the same policy then refuses as the run's own. The
// control is the run without a shadow.
func TestAShadowSaysWhatItWouldRefuse(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	own, strict := policyFile(t, "own", visitor), policyFile(t, "strict", strictVisitor)
	run := func(flags ...string) result { return h.agent(flags, "python3", "-c", visits) }
	const reached = "0 0 5\n['reached', 'reached', 'reached'] reached\n"
	control, watched, under := run("--policy", own), run("--policy", own, "--policy-shadow", strict), run("--policy", strict, "--output-limit=1M")
	control.want(t, agent.StatusExited, 0, reached)
	watched.want(t, agent.StatusExited, 0, reached)
	under.want(t, agent.StatusExited, 0, "0 5 5\n['refused', 'refused', 'refused'] reached\n")
	if control.record.Shadow != nil || watched.record.Shadow == nil || len(refusedWords(control.record.Denials)) != 1 {
		t.Fatalf("control %+v, with a shadow %+v\n%s", control.record, watched.record, watched.stderr)
	}
	if got, want := refusedWords(watched.record.Denials), refusedWords(control.record.Denials); !slices.Equal(got, want) {
		t.Errorf("the shadow changes what is refused: %q instead of %q", got, want)
	}
	use := watched.record.Shadow
	// A refusal of both is in the denials of each.
	if got, want := refusedWords(append(use.Denials, watched.record.Denials...)), refusedWords(under.record.Denials); !slices.Equal(got, want) || use.Refused != 4 {
		t.Errorf("the shadow said %q (%d), the policy refused %q", got, use.Refused, want)
	}
	if len(use.Limits) != 1 || use.Limits[0].Place != "limits.output" || use.Limits[0].Value != 20 {
		t.Errorf("%+v", use.Limits)
	}
	if !strings.Contains(watched.stderr, "policy strict would have refused 4 actions by 2 rules, and not have been enough in limits.output") {
		t.Errorf("it does not say so:\n%s", watched.stderr)
	}
	ended := run("--policy", strict)
	if ended.record.Status != agent.StatusOutputLimit {
		t.Errorf("the limit that the shadow named does not end the run: %+v", ended.record.Status)
	}
}

// Calls of models and checks of grants that the shadow does not grant are counted, by root's
// own kernel, by cloved's, and at each start of a detached run. The control is the grant that both have.
func TestAShadowSeesGrants(t *testing.T) {
	own := policyFile(t, "own", "widen: {models: x, grants: x}\nmodels: [echo, scripted]\ngrants: [\"tool:*\"]\n")
	strict := policyFile(t, "strict", "widen: {models: x, grants: x}\nmodels: [scripted]\ngrants: [\"tool:read\"]\nbudgets: [model_calls=1]\n")
	script := askScript + fmt.Sprintf(askChat+"\n"+askChat, "echo", "echo") + `
import json, os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["CLOVE_AGENT_SOCKET"])
f = s.makefile("rw")
for i, tool in enumerate(["read", "write", "write"]):
    f.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "grant.check", "params": {"what": "tool:" + tool}}) + "\n")
    f.flush()
    print(json.loads(f.readline())["result"]["allowed"])
`
	flags := []string{"--policy", own, "--policy-shadow", strict}
	check := func(t *testing.T, use *agent.ShadowUse, calls int64, text string) {
		t.Helper()
		if use == nil {
			t.Fatalf("no shadow in the record\n%s", text)
		}
		if got := refusedWords(use.Denials); !slices.Equal(got, []string{"grant tool:write no grant covers it 2", "model echo no grant covers it 2"}) || use.Refused != 4 {
			t.Errorf("%q\n%s", got, text)
		}
		if len(use.Limits) != 1 || use.Limits[0] != (agent.ShadowLimit{Place: "budgets.model_calls", Value: 1, Peak: calls}) {
			t.Errorf("%+v", use.Limits)
		}
	}
	t.Run("without cloved", func(t *testing.T) {
		r := newHost(t).agent(flags, "python3", "-c", script)
		if strings.Count(r.stdout, "True") != 3 || strings.Count(r.stdout, "200 ") != 2 {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
		check(t, r.record.Shadow, 2, r.stderr)
	})
	t.Run("detached", func(t *testing.T) {
		d := newCloved(t)
		for start := range 2 {
			if start == 0 {
				d.ok(append(append([]string{"run", "-d", "--name=watched"}, flags...), "--", "python3", "-c", script)...)
			} else {
				d.ok("restart", "watched")
			}
			d.ok("wait", "watched")
			var run agent.Run
			text := d.ok("inspect", "watched")
			if err := json.Unmarshal([]byte(text), &run); err != nil || run.Record == nil {
				t.Fatalf("%v\n%s", err, text)
			}
			check(t, run.Record.Shadow, int64(2*start+2), text) // a budget holds over all starts
		}
		if text := d.ok("events", "--once", "--run", "watched"); strings.Count(text, " shadowed ") != 2 || !strings.Contains(text, "policy custom (strict) would have refused 4 actions by 2 rules") {
			t.Errorf("events:\n%s", text)
		}
		text := d.ok("why", "watched")
		for _, want := range []string{"would have been refused by custom (strict): model echo, by no grant covers it (2 times)", "policy: models: [echo]", "more than budgets.model_calls, 1; it was 4", "policy: grants: [\"tool:write\"]"} {
			if !strings.Contains(text, want) {
				t.Errorf("clove why lacks %q:\n%s", want, text)
			}
		}
	})
}

// A shadow with a mistake, or one that no run could have, starts nothing.
func TestAShadowWithAMistakeIsRefused(t *testing.T) {
	h := newHost(t)
	for want, text := range map[string]string{
		"limits.memory":             "limits: {memory: 1K}\n",
		"did you mean":              "limit: {}\n",
		"allows more than standard": "network: {mode: public}\n",
	} {
		r := h.agent([]string{"--policy-shadow", policyFile(t, "bad", text)}, "true")
		if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "--policy-shadow: ") || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d\n%s", want, r.code, r.stderr)
		}
	}
	if r := h.agent([]string{"--policy-shadow", policyFile(t, "good", "limits: {memory: 64M}\n")}, "true"); r.code != 0 {
		t.Errorf("control: %s", r.stderr)
	}
}

// A filter and a root that are stricter are seen call by call, and as the run's own they refuse
// exactly what was counted. The control is the run without a shadow, in which all of it works, too.
func TestAShadowSeesCallsAndFiles(t *testing.T) {
	h := newHost(t)
	strict := policyFile(t, "strict", "seccomp: strict\nfiles: {root: read-only, writable: [/tmp]}\n")
	script := `
import os, socket
def attempt(f):
    try:
        f()
        return "yes"
    except OSError:
        return "no"
def write(path):
    with open(path, "w") as f: f.write("x")
print([attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()) for _ in range(3)],
      [attempt(lambda: write("/workspace/a")) for _ in range(2)], attempt(lambda: os.mkdir("/home/agent/d")), attempt(lambda: write("/tmp/a")), attempt(lambda: open("/etc/passwd").close()))
`
	run := func(flags ...string) result { return h.agent(flags, "python3", "-B", "-c", script) }
	const works = "['yes', 'yes', 'yes'] ['yes', 'yes'] yes yes yes\n"
	run().want(t, agent.StatusExited, 0, works)
	watched, under := run("--policy-shadow", strict), run("--policy", strict)
	watched.want(t, agent.StatusExited, 0, works)
	under.want(t, agent.StatusExited, 0, "['no', 'no', 'no'] ['no', 'no'] no yes yes\n")
	use := watched.record.Shadow
	if got, want := refusedWords(use.Denials), refusedWords(under.record.Denials); !slices.Equal(got, want) || use.Refused < 6 {
		t.Errorf("the shadow said\n%s\nand the policy refused\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, d := range use.Denials {
		if !strings.HasSuffix(d.Program, "python3") && !strings.Contains(d.Program, "/python3.") || d.Call == nil {
			t.Errorf("no program or call: %+v", d)
		}
	}
	if len(use.Unseen) != 0 || len(watched.record.Denials) != 0 {
		t.Errorf("unseen %v, refused %+v", use.Unseen, watched.record.Denials)
	}
}
