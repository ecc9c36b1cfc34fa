package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel"
	"clove.run/clove/store"
)

// What 64 agents send is compared with SQLite, everything else with clove.
func TestMailIsComparedToItsPeers(t *testing.T) {
	figures := judgeMail(samples{
		whatSend:    {postClove: {{2}, {2}}, postMany: {{2}, {4}}},
		whatSends1:  {postClove: {{100}, {200}}, postSQLite: {{50}, {50}}},
		whatSends64: {postClove: {{1000}, {1000}}, postSQLite: {{500}, {500}}},
	})
	var got []string
	for _, f := range figures {
		got = append(got, strings.TrimSpace(strings.Join([]string{f.What, f.Peer, short(f.Values.P50), f.ratioText()}, "; ")))
	}
	if want := "a durable send; clove; 2.0;|a durable send; clove, 10 000 mailboxes; 2.0; 1.00 (1.00 to 2.00) to clove|durable sends, 1 agent; clove; 100;|" +
		"durable sends, 1 agent; SQLite; 50.0; 0.50 (0.25 to 0.50) to clove|durable sends, 64 agents; clove; 1000; 2.00 (2.00 to 2.00) to SQLite|durable sends, 64 agents; SQLite; 500;|" +
		"64 agents to 1; clove; 5.0;|64 agents to 1; SQLite; 10.0; 2.00 (1.00 to 2.00) to clove"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "|"), want)
	}
}

func TestDelaysOfMessages(t *testing.T) {
	whole, behind, err := delays([]float64{1e6, 3e6, 10e6, 11e6}, []float64{4e6, 12e6})
	if err != nil || len(whole) != 2 || whole[0] != 3 || whole[1] != 2 || behind[0] != 1 || behind[1] != 1 {
		t.Errorf("%v, %v, %v", whole, behind, err)
	}
	if _, _, err := delays([]float64{1, 2, 3, 4}, []float64{4}); err == nil {
		t.Error("a message that did not come is not noticed")
	}
}

// The agent's client works with the code of the gate and of the kernel.
func TestAgentSendsMail(t *testing.T) {
	b := unprivileged(t)
	run := agent.Run{Spec: idleSpec(boxName(0))}
	run.Spec.Kernel = agent.Kernel{Socket: true, Grants: []string{"send:mail-*", checked}}
	k, err := b.openKernel("kernel", run)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.Attach(context.Background(), run, true, func(api.Standing) {}); err != nil {
		t.Fatal(err)
	}
	a := &agentMail{agentSocket: agentSocket{path: serveAgent(t, k.Kernel, run)}, name: boxName(0), second: boxName(0)}
	m := &mailer{open: map[string]post{postClove: a}}
	for _, c := range []struct {
		do     string
		values int
	}{{doSend, 3}, {doClear, 0}, {doTell, 6}, {doHear, 3}, {doCheck, 3}} {
		if r := m.obey(mailOrder{Post: postClove, Do: c.do, Callers: 1, Turns: 3}); r.Error != "" || len(r.Values) != c.values {
			t.Errorf("%s: %+v", c.do, r)
		}
	}
	n, err := k.Counts(nil, nil)
	if err != nil || n.Mailboxes != 1 || n.Messages != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// Python's module sends as the others do.
func TestSQLiteSendsMail(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
	m := &mailer{folder: t.TempDir(), open: map[string]post{}}
	for _, callers := range []int{1, 8} {
		if r := m.obey(mailOrder{Post: postSQLite, Do: doSend, Callers: callers, Turns: 3}); r.Error != "" || len(r.Values) != callers*3 {
			t.Errorf("%+v", r)
		}
	}
	if r := m.obey(mailOrder{Post: postSQLite, Do: doClear}); r.Error != "" {
		t.Error(r.Error)
	}
	if r := m.obey(mailOrder{Post: "nonsense", Do: doSend}); r.Error == "" {
		t.Error("a post that there is not sends")
	}
}

// The mailboxes of the past could be those of a real cloved, and the store's Go API leaves nothing.
func TestMailOfThePast(t *testing.T) {
	d := unprivileged(t).newCloved("past")
	if err := d.remember(12); err != nil {
		t.Fatal(err)
	}
	if size, err := d.receive(false); err != nil || size < 100 {
		t.Fatalf("a mailbox takes %v bytes, %v", size, err)
	}
	file, err := store.OpenKernel(filepath.Join(d.state, "kernel.db"), time.Minute, kernel.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := storeMail{file}
	if r, err := p.run(mailOrder{Do: doSend, Callers: 4, Turns: 2}); err != nil || len(r.Values) != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := p.run(mailOrder{Do: doClear}); err != nil {
		t.Error(err)
	}
	if problems, err := file.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
