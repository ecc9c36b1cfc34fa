//go:build root

package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// A reservation that cannot fit ends the run, with cloved and without. The control: with
// --at-end refuse it is only refused, and so is one that open reservations keep out.
func TestAReservationThatCannotFitEndsTheRun(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			for _, atEnd := range []string{"refuse", "end"} {
				r := h.calls("--budget=reviews=10", "--at-end="+atEnd)
				budgetIn(t, r.call(agents.BudgetCharge.Name, `{"amounts":{"reviews":4}}`), "reviews")
				r.call(agents.BudgetReserve.Name, `{"amounts":{"reviews":5}}`)
				if m := r.call(agents.BudgetReserve.Name, `{"amounts":{"reviews":6}}`); !refusedWith(m, api.CodeBudget) {
					t.Errorf("%+v", m)
				}
				if b := budgetIn(t, r.call(agents.BudgetGet.Name, "{}"), "reviews"); b.Spent || b.Used != 4 || b.Reserved != 5 {
					t.Errorf("%s: %+v", atEnd, b)
				}
				r.request(agents.BudgetReserve.Name, `{"amounts":{"reviews":7}}`)
				if atEnd == "refuse" {
					if m := r.answer(); !refusedWith(m, api.CodeBudget) {
						t.Errorf("%+v", m)
					}
					if end := r.wait(); end.record.Status != agent.StatusExited {
						t.Errorf("control: %+v", end.record)
					}
					continue
				}
				end := r.waitUnasked()
				if hit := end.record.Limit; end.record.Status != agent.StatusBudget || end.code != agent.ExitKilled || hit == nil || hit.Name != "reviews" || hit.Value != 10 || *hit.Peak != 4 {
					t.Errorf("%s, exit %d, %+v\n%s", end.record.Status, end.code, hit, end.stderr)
				}
				if !strings.Contains(end.stderr, "4 are spent, and the next call would have reserved at least 7: give more with --budget reviews=20") {
					t.Errorf("%s", end.stderr)
				}
			}
		})
	}
}

// shownState is the state that ps and show have of a run; empty: it changes between the two.
func (d *cloved) shownState(name string) string {
	d.t.Helper()
	ps, show := d.ok("ps", "-a", "--filter", "name="+name), d.ok("show", name)
	for _, state := range []string{"running", "paused"} {
		if strings.Contains(ps, " "+state+" ") && strings.Contains(show, "state      "+state) {
			return state
		}
	}
	return ""
}

// All runs of a namespace spend from its account. A charge of one of them beyond it is refused and
// freezes that run, and nothing else; ps and show say so. More for the account, or a reset of it,
// lets the run go on. The control is what the Linux kernel counts: that freezes all of them.
func TestANamespaceStopsTheRunThatCharged(t *testing.T) {
	d := newCloved(t)
	const key = "0/ns:acme/research"
	d.ok("budget", "set", "--at-end", "pause", "ns:acme/research", "reviews=10/month", "cpu_ms=1000000")
	d.detach("idle", "sleep 1000", "--agent-socket", "--namespace=acme/research")
	r := d.calls("--name=spends", "--agent-socket", "--namespace=acme/research")
	if b := budgetIn(t, r.call(agents.BudgetCharge.Name, `{"amounts":{"reviews":8}}`), "reviews"); b.Used != 8 {
		t.Errorf("%+v", b)
	}
	for _, lets := range [][]string{{"budget", "reset", "ns:acme/research", "reviews"}, {"budget", "set", "--at-end", "pause", key, "reviews=20/month"}} {
		r.request(agents.BudgetCharge.Name, `{"amounts":{"reviews":9007199254740991}}`)
		until(t, "spends is frozen", func() bool { return d.frozen("spends") && d.shownState("spends") == "paused" })
		if d.frozen("idle") || d.shownState("idle") != "running" {
			t.Error("a run that charged nothing is frozen")
		}
		d.ok(lets...)
		until(t, "spends goes on", func() bool { return !d.frozen("spends") && d.shownState("spends") == "running" })
		if m := r.answer(); !refusedWith(m, api.CodeBudget) {
			t.Errorf("%+v", m)
		}
		d.ok("budget", "reset", key, "reviews")
		if m := r.call(agents.BudgetCharge.Name, `{"amounts":{"reviews":8}}`); len(m.Error) > 0 {
			t.Errorf("%s", m.Error)
		}
	}
	d.ok("budget", "set", "--at-end", "pause", "ns:acme/research", "cpu_ms=0")
	until(t, "control: idle is frozen", func() bool { return d.frozen("idle") && d.shownState("idle") == "paused" })
	d.ok("budget", "set", "--at-end", "pause", "ns:acme/research", "cpu_ms=1000000")
	until(t, "idle goes on", func() bool { return !d.frozen("idle") })
	end := r.wait()
	for _, want := range []string{"8 of 10 reviews are used in " + key + "\n", "8 of 10 reviews are used in " + key + ", 9007199254740991 more are wanted; the run is paused until clove budget set gives"} {
		if !strings.Contains(end.stderr, want) {
			t.Errorf("%q is not in\n%s", want, end.stderr)
		}
	}
	if end.record.Version != 2 || end.record.Namespace != "acme/research" || end.record.Status != agent.StatusExited {
		t.Errorf("%+v", end.record)
	}
	if report := d.ok("budget", "report", "--csv"); !strings.Contains(report, ",0,reviews,24\n") {
		t.Errorf("%s", report)
	}
	if top := d.ok("budget", "top", "reviews"); !strings.HasPrefix(top, "DIMENSION") {
		t.Errorf("%s", top)
	}
	if log := d.ok("audit", "query", "--json"); !strings.Contains(log, `"what":"`+key+` reset reviews"`) {
		t.Errorf("%s", log)
	}
	d.ok("rm", "-f", "idle")
}

// One charge of everything ends the run that makes it, with and without a limit of its own, and no
// sibling: the part that was not the run's own is left. A spent account refuses, and the run that starts then
// is told so; where clove itself counts, the record names the account.
func TestAChargeOfEverythingEndsNoSibling(t *testing.T) {
	d := newCloved(t)
	d.ok("budget", "set", "--at-end", "end", "ns:acme", "reviews=100")
	d.detach("idle", "sleep 1000", "--agent-socket", "--namespace=acme")
	sibling := d.calls("--name=sibling", "--agent-socket", "--namespace=acme")
	for _, flag := range []string{"--agent-socket", "--budget=reviews=60"} {
		attacker := d.calls("--namespace=acme", flag)
		attacker.request(agents.BudgetCharge.Name, `{"amounts":{"reviews":9007199254740991}}`)
		if end := attacker.waitUnasked(); end.record.Status != agent.StatusBudget || end.record.Limit == nil || (end.record.Limit.Account == "0/ns:acme") != (flag == "--agent-socket") {
			t.Errorf("%s: %+v, %s", flag, end.record, end.stderr)
		}
	}
	if b := budgetIn(t, sibling.call(agents.BudgetCharge.Name, `{"amounts":{"reviews":40}}`), "reviews"); b.Used != 40 {
		t.Errorf("%+v", b)
	}
	for _, call := range []string{agents.BudgetCharge.Name, agents.BudgetReserve.Name} {
		if m := sibling.call(call, `{"amounts":{"reviews":1}}`); !refusedWith(m, api.CodeBudget) || !strings.Contains(string(m.Error), "0/ns:acme") {
			t.Errorf("%+v", m)
		}
	}
	late := d.calls("--namespace=acme", "--agent-socket")
	if m := late.call(agents.BudgetCharge.Name, `{"amounts":{"reviews":1}}`); !refusedWith(m, api.CodeBudget) {
		t.Errorf("%+v", m)
	}
	if end := late.wait(); end.record.Status != agent.StatusExited || !strings.Contains(end.stderr, "100 of 100 reviews are used in 0/ns:acme") {
		t.Errorf("%+v, %s", end.record, end.stderr)
	}
	if end := sibling.wait(); end.record.Status != agent.StatusExited {
		t.Errorf("%+v", end.record)
	}
	d.ok("budget", "set", "ns:acme", "cpu_ms=0")
	d.clove("wait", "idle")
	record := d.inspect("idle").Record
	if record == nil || record.Status != agent.StatusBudget || record.Limit == nil || record.Limit.Account != "0/ns:acme" {
		t.Errorf("control: %+v", record)
	}
	d.ok("rm", "-f", "idle")
}

// A hundred reservations at once, through a sandbox: exactly as many are granted as fit. Two
// runs that share an account do not get one more together.
func TestReservationsAtOnceNeverOvershoot(t *testing.T) {
	d := newCloved(t)
	reserve := func(calls int, flags ...string) *running {
		r := d.start(self(flags...), agentInside, agentWord, "reserve", fmt.Sprint(calls))
		if line := r.line(); line != "up" {
			t.Fatalf("%q\n%s", line, &r.stderr)
		}
		return r
	}
	counts := func(r *running) (granted, refused int) {
		line := r.line()
		if n, err := fmt.Sscan(line, &granted, &refused); n != 2 {
			t.Fatalf("%q, %v", line, err)
		}
		return granted, refused
	}
	alone := reserve(100, "--budget=reviews=37", "--at-end=refuse")
	fmt.Fprintln(alone.stdin)
	if granted, refused := counts(alone); granted != 37 || refused != 63 {
		t.Errorf("alone: %d are granted, %d refused", granted, refused)
	}
	alone.wait()
	d.ok("budget", "set", "--at-end", "refuse", "ns:acme", "reviews=37")
	both := []*running{reserve(50, "--agent-socket", "--namespace=acme"), reserve(50, "--agent-socket", "--namespace=acme")}
	granted, refused := 0, 0
	for _, r := range both {
		fmt.Fprintln(r.stdin)
	}
	for _, r := range both {
		g, n := counts(r)
		granted, refused = granted+g, refused+n
	}
	if granted > 37 || granted+refused != 100 || granted == 0 {
		t.Errorf("together: %d are granted, %d refused", granted, refused)
	}
	if line := d.ok("budget", "list", "0/ns:acme"); !strings.Contains(line, " 37 ") {
		t.Errorf("%s", line)
	}
	for _, r := range both {
		r.wait()
	}
	d.ok("check")
}

// socketOwner is the user of a TCP connection from an address of 127.0.0.1, as /proc/net/tcp has it.
func socketOwner(t *testing.T, address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Error(err)
	}
	number, _ := strconv.Atoi(port)
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 7 && fields[1] == fmt.Sprintf("0100007F:%04X", number) {
			return " of " + fields[7]
		}
	}
	return " of no user"
}

// The command of a member of cloved's group at a mark runs with the member's ids and
// none of root's groups; root's own command runs as root. A URL gets the event.
func TestCalloutsHaveTheirUsersRights(t *testing.T) {
	d := newClovedFor(t, groupName)
	dir, err := os.MkdirTemp("", "clove-callout")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	posted := make(chan string, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		posted <- string(text) + socketOwner(t, r.RemoteAddr)
	}))
	defer server.Close()
	write := func(name string) string {
		return "{ id -u; id -g; id -G; echo $CLOVE_EVENT $CLOVE_USED; env | grep -c CLOVE_; } >" + filepath.Join(dir, name+".part") + "; mv " + filepath.Join(dir, name+".part") + " " + filepath.Join(dir, name)
	}
	flags := func(name string) []string {
		return []string{"run", "-d", "--name", name, "--budget", "reviews=10", "--at-end", "pause", "--on-warn", write(name), "--on-end", server.URL, "--", "sleep", "1000"}
	}
	if r := d.as(memberUID, []uint32{groupID}, flags("mine")...); r.code != 0 {
		t.Fatalf("%s", r.stderr)
	}
	d.ok(flags("roots")...)
	for run, want := range map[string]string{
		members("mine"): fmt.Sprintf("%[1]d\n%[1]d\n%[1]d\nbudget-warning 8\n9\n", memberUID),
		"roots":         "0\n0\n",
	} {
		name := run[strings.LastIndexAny(run, "/~:")+1:]
		charge := func(amount int) {
			d.api(agents.BudgetCharge.Name, map[string]any{"run": run, "amounts": map[string]int{"reviews": amount}}, nil)
		}
		charge(8)
		var text []byte
		until(t, "the command is called", func() bool { text, err = os.ReadFile(filepath.Join(dir, name)); return err == nil })
		if !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %q, want %q", run, text, want)
		}
		charge(3)
		if event := <-posted; !strings.Contains(event, `"event":"budget-end"`) || !strings.Contains(event, `"used":11`) || !strings.Contains(event, `"name":"`+name+`"`) || !strings.HasSuffix(event, map[string]string{"mine": fmt.Sprint(" of ", memberUID), "roots": " of 0"}[name]) {
			t.Errorf("%s: %s", run, event)
		}
	}
	if len(posted) > 0 {
		t.Errorf("once more: %s", <-posted)
	}
	d.ok("rm", "-f", members("mine"), "roots")
}

// A user's account holds for runs that name no budget, where it limits what the Linux kernel
// counts. The control is the same run of another user.
func TestAUsersLimitHoldsWithoutABudget(t *testing.T) {
	d := newClovedFor(t, groupName)
	d.ok("budget", "set", fmt.Sprint(memberUID), "cpu_ms=200")
	for _, uid := range []uint32{otherUID, memberUID} {
		if r := d.as(uid, []uint32{groupID}, "run", "-d", "--name", "burns", "--", "sh", "-c", "while :; do :; done"); r.code != 0 {
			t.Fatal(r.stderr)
		}
	}
	if r := d.as(memberUID, []uint32{groupID}, "wait", "burns"); r.code == 0 && strings.TrimSpace(r.stdout) != "137" {
		t.Errorf("%+v", r)
	}
	run := d.inspect(members("burns"))
	if hit := run.Record.Limit; run.Record.Status != agent.StatusBudget || hit == nil || hit.Name != "cpu_ms" || hit.Value != 200 {
		t.Errorf("%+v", run.Record)
	}
	if other := d.inspect(ownersName(otherUID, "burns")); other.State != agent.StateRunning {
		t.Errorf("control: %s", other.State)
	}
	d.ok("rm", "-f", members("burns"), ownersName(otherUID, "burns"))
}

// A member's run in the foreground is cloved's; its lines about budgets are the same as
// root's.
func TestAMemberSeesTheWarning(t *testing.T) {
	d := newClovedFor(t, groupName)
	const charge = `import json, os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["CLOVE_AGENT_SOCKET"]); f = s.makefile("rw")
for n in 8, 3:
    print(json.dumps({"jsonrpc": "2.0", "id": n, "method": "budget.charge", "params": {"amounts": {"reviews": n}}}), file=f, flush=True)
    f.readline()
`
	r := d.as(memberUID, []uint32{groupID}, "run", "--rm", "--budget", "reviews=10", "--at-end", "pause", "--timeout", "3s", "--", "python3", "-c", charge)
	for _, want := range []string{"clove: budget: 8 of 10 reviews are used\n", "clove: budget: 11 of 10 reviews are used; the run is paused until clove budget raise gives more; --timeout ends it at "} {
		if strings.Count(r.stderr, want) != 1 {
			t.Errorf("%q is not once in\n%s", want, r.stderr)
		}
	}
	if r.code != agent.ExitTimeout {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
}
