//go:build root

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// answers is an agent that passes each message on to the name results, in the transaction that takes it.
const answers = `
from clove.agent import Agent
a = Agent()
while True:
    m = a.mail.receive().messages[0]
    a.mail.ack([m.id], then=[{"method": "mail.send", "params": {"to": "results", "body": m.body}}])
`

// wakeable gives a name of a namespace a manifest of an agent that runs a script.
func (d *cloved) wakeable(name, namespace, script string, keys ...string) (manifest string) {
	d.t.Helper()
	sdk, err := filepath.Abs("../sdk/python")
	if err != nil {
		d.t.Fatal(err)
	}
	of, within := "m-"+name, []string{}
	if namespace != "" {
		within, keys = []string{"--namespace", namespace}, append(keys, "namespace: "+namespace)
	}
	dir := userDir(d.t, map[string]string{"a.py": script, "a.yaml": fmt.Sprintf("version: 1\nname: %s\nextends: sandboxed\nscript: a.py\nfiles: {volumes: [%q]}\nenvironment: {set: {PYTHONPATH: /opt/sdk}}\ngrants: [\"send:results\"]\nlimits: {memory: 64M, pids: 32, disk: 32M, stop_timeout: 2s}\n%s\n",
		of, sdk+":/opt/sdk:ro", strings.Join(keys, "\n"))})
	d.ok("manifest", "add", filepath.Join(dir, "a.yaml"))
	d.ok(slices.Concat([]string{"name", "reserve"}, within, []string{"results"})...)
	d.ok(slices.Concat([]string{"name", "reserve"}, within, []string{"--manifest", of, name})...)
	return filepath.Join(dir, "a.yaml")
}

// results are the bodies of what has come to the name results.
func (d *cloved) results() (bodies []string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	c, err := client.Dial(ctx, d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	for after := ""; ; {
		var all api.MailReadResult
		err := c.Call(ctx, methods.MailRead.Name, map[string]any{"mailbox": "results", "after": after}, &all)
		if err != nil && api.ErrorOf(err).Code == api.CodeNotFound {
			return nil // no message has ever come
		}
		if err != nil {
			d.t.Fatal(err)
		}
		for _, m := range all.Messages {
			bodies = append(bodies, string(m.Body))
		}
		if all.Next == "" {
			slices.Sort(bodies)
			return bodies
		}
		after = all.Next
	}
}

// wakings are the runs that mail has started, as the audit log has them.
func (d *cloved) wakings() int {
	d.t.Helper()
	return strings.Count(d.ok("audit", "query", "--json", "--text", "mail.wake", "--last", "1000"), `"mail.wake"`)
}

// 64 senders in eight sandboxes start one run, which gets all that they have sent. Without wake they start none.
func TestManySandboxesWakeOneRun(t *testing.T) {
	d := newCloved(t)
	d.wakeable("helper", "", answers)
	const sandboxes, each = 8, 8
	for _, wake := range []bool{false, true} {
		script := fmt.Sprintf(`
import sys, threading
from clove.agent import Agent
def send(n):
    Agent().mail.send("helper", "%t " + sys.argv[1] + " " + str(n), wake=%s)
all = [threading.Thread(target=send, args=(n,)) for n in range(%d)]
[one.start() for one in all]
[one.join() for one in all]
`, wake, map[bool]string{true: "True", false: "False"}[wake], each)
		var names []string
		for i := range sandboxes {
			name := fmt.Sprintf("sender-%t-%d", wake, i)
			names = append(names, name)
			d.ok(append(append([]string{"run", "-d"}, withSDK(t, "--name", name, "--memory", "64M", "--grant", "send:helper")...), "--", "python3", "-c", script, fmt.Sprint(i))...)
		}
		for _, name := range names {
			d.ok("wait", name)
			if run := d.inspect(name); run.Record == nil || run.Record.ExitCode != 0 {
				t.Fatalf("%s: %+v\n%s", name, run.Record, d.ok("logs", name))
			}
		}
		want := 0
		if wake {
			want = 1
			until(t, "all is handled", func() bool { return len(d.results()) == 2*sandboxes*each })
		}
		if n := d.wakings(); n != want {
			t.Errorf("wake %t: %d runs were started", wake, n)
		}
	}
	if all := d.results(); len(slices.Compact(all)) != 2*sandboxes*each {
		t.Errorf("%q", all)
	}
	d.ok(append([]string{"rm", "-f"}, strings.Fields(d.ok("ps", "-q"))...)...)
}

// cloved dies between the message and the start, before and behind each commit: the message starts one run, which
// handles it once. The control is the same without a death.
func TestWakeSurvivesKills(t *testing.T) {
	f := newFaulty(t)
	f.wakeable("helper", "", answers)
	woken := 0
	for i, point := range append([]failpoint{{}}, decided(methods.MailPost.Name, "wake")...) {
		t.Run(point.name+point.at, func(t *testing.T) {
			defer func(outer *testing.T) { f.t = outer }(f.t)
			process := "cloved"
			if point.name == "" {
				process = ""
			}
			f.arm(t, point, process, "die")
			s := &sharing{faulty: f, name: "woken"}
			s.do(methods.MailPost.Name, map[string]any{"to": "helper", "body": i, "wake": true, "key": fmt.Sprint("send-", i)}, nil)
			s.awaitFailure(process, point)
			if process != "" {
				f.stop(unix.SIGKILL)
				f.serve()
			}
			until(t, "the message is handled", func() bool { return slices.Contains(f.results(), fmt.Sprint(i)) })
			woken++
			if got := f.results(); len(got) != woken || len(slices.Compact(got)) != woken {
				t.Errorf("handled: %q", got)
			}
			if n := f.wakings(); n != woken {
				t.Errorf("%d runs were started for %d messages", n, woken)
			}
			// Its agent waits, and is ended, so that the next message starts another.
			live := strings.Fields(f.ok("ps", "-q", "--filter", "name=m-helper"))
			if len(live) != 1 {
				t.Fatalf("%q live", live)
			}
			f.ok("kill", live[0])
			until(t, "it has gone", func() bool { return f.ok("ps", "-aq", "--filter", "name=m-helper") == "" })
		})
	}
}

// waking is a client that wakes a name.
func (d *cloved) waking(name, namespace string, body any) {
	d.t.Helper()
	d.api(methods.MailPost.Name, map[string]any{"to": name, "namespace": namespace, "body": body, "wake": true}, nil)
}

// An idle run ends with a status of its own, and its policy does not start it again. Runs that work, or hold a job, or
// have a shorter wait than the time go on.
func TestIdle(t *testing.T) {
	d := newCloved(t)
	d.ok("queue", "add", "tasks")
	d.ok("jobs", "add", "tasks", "1")
	run := func(name, script string, flags ...string) {
		args := append([]string{"run", "-d"}, withSDK(t, append([]string{"--name", name, "--memory", "64M", "--agent-socket", "--idle", "1s"}, flags...)...)...)
		d.ok(append(args, "--", "python3", "-c", "from clove.agent import Agent\nimport time\na = Agent()\n"+script)...)
	}
	run("works", "a.ready()\ntime.sleep(1000)")
	run("holds", "job = a.job.claim('tasks')\na.ready()\na.mail.receive()", "--grant", "name:job/tasks")
	run("has-mail", "m = a.mail.receive().messages[0]\na.mail.receive(after=m.id)")
	d.ok("mail", "send", "has-mail", "1")
	run("waits", "open('/home/agent/kept', 'w').write('still here')\na.mail.receive()", "--restart", "always", "--home", "waits")
	run("asks", "while True:\n    try: a.mail.receive(within_ms=200)\n    except Exception: pass")
	for _, name := range []string{"waits", "asks"} {
		until(t, name+" is ended", func() bool { run := d.inspect(name); return run.Record != nil && run.State == agent.StateEnded })
		record := d.inspect(name).Record
		if record.Status != agent.StatusIdle || record.ExitCode != 0 || record.Error == nil || record.Error.Step != "idle" {
			t.Errorf("%s: %+v", name, record)
		}
		if why := d.ok("why", "run", name); !strings.Contains(why, "only waited for mail or jobs, for 1s") {
			t.Errorf("%s", why)
		}
		if events := d.ok("events", "--once", "--since", "10m", "--json"); !strings.Contains(events, `"idle"`) || !strings.Contains(events, "only waited") {
			t.Errorf("%s", events)
		}
		if ps := d.ok("ps", "-a"); !strings.Contains(ps, "idle") {
			t.Errorf("%s", ps)
		}
	}
	time.Sleep(3 * time.Second) // that the others go on shows only in time
	for _, name := range []string{"works", "holds", "has-mail"} {
		if run := d.inspect(name); run.State != agent.StateRunning {
			t.Errorf("%s is %s: %+v", name, run.State, run.Record)
		}
	}
	if run := d.inspect("waits"); run.State != agent.StateEnded {
		t.Errorf("its policy has started it again: %s", run.State)
	}
	if out := d.ok("run", "--home", "waits", "--", "cat", "/home/agent/kept"); out != "still here" {
		t.Errorf("%q", out)
	}
	d.ok("rm", "-f", "works", "holds", "has-mail", "waits", "asks")
}

// Messages come about when the runs of a name end for being idle: each is handled once, over many lives.
func TestWakeMeetsIdle(t *testing.T) {
	d := newCloved(t)
	const names, each = 5, 6
	type helper struct {
		sent, handled int
		next          time.Time
	}
	var helpers [names]helper
	for n := range helpers {
		d.wakeable(fmt.Sprint("helper-", n), "", answers, "idle: 1s")
	}
	until(t, "all messages are handled", func() bool {
		counts, done := map[string]int{}, 0
		for _, body := range d.results() {
			name, _, _ := strings.Cut(strings.Trim(body, `"`), " ")
			counts[name]++
		}
		for n := range helpers {
			h, name := &helpers[n], fmt.Sprint("helper-", n)
			switch {
			case counts[name] > h.handled:
				h.handled = counts[name]
				h.next = time.Now().Add(time.Second + time.Duration(rand.IntN(200)-150)*time.Millisecond)
			case h.handled == h.sent && h.sent < each && time.Now().After(h.next):
				d.waking(name, "", fmt.Sprint(name, " ", h.sent))
				h.sent++
			}
			if h.handled >= each {
				done++
			}
		}
		return done == names
	})
	until(t, "the last one has ended", func() bool { return d.ok("ps", "-aq") == "" })
	all := d.results()
	if distinct := len(slices.Compact(slices.Clone(all))); len(all) != names*each || distinct != names*each {
		t.Errorf("%d messages were handled, %d different: %q", len(all), distinct, all)
	}
	if n := d.wakings(); n < names || n > names*each {
		t.Errorf("%d runs for %d messages", n, names*each)
	} else {
		t.Logf("%d runs for %d messages", n, names*each)
	}
}

// The name's manifest is the one of its reservation: another of the same name is not started, and neither is an
// executable that has changed.
func TestWakeStartsByDigest(t *testing.T) {
	d := newCloved(t)
	file := d.wakeable("helper", "", answers)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "script: a.py", "command: [sh, -c, 'exit 7']", 1)
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	d.ok("manifest", "add", file)
	d.waking("helper", "", 1)
	until(t, "the message is handled", func() bool { return len(d.results()) == 1 })
	d.ok(append([]string{"rm", "-f"}, strings.Fields(d.ok("ps", "-aq"))...)...)
}
