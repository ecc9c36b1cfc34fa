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
				budgetIn(t, r.call(api.MethodBudgetCharge, `{"amounts":{"reviews":4}}`), "reviews")
				r.call(api.MethodBudgetReserve, `{"amounts":{"reviews":5}}`)
				if m := r.call(api.MethodBudgetReserve, `{"amounts":{"reviews":6}}`); !refusedWith(m, api.CodeBudget) {
					t.Errorf("%+v", m)
				}
				if b := budgetIn(t, r.call(api.MethodBudgetGet, "{}"), "reviews"); b.Spent || b.Used != 4 || b.Reserved != 5 {
					t.Errorf("%s: %+v", atEnd, b)
				}
				r.request(api.MethodBudgetReserve, `{"amounts":{"reviews":7}}`)
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
				if !strings.Contains(end.stderr, "less left than the agent wanted to reserve") {
					t.Errorf("%s", end.stderr)
				}
			}
		})
	}
}

// All runs of a namespace spend from its account: what one of them uses beyond the limit
// freezes all of them, and more for the account lets all go on. The control is a run of
// another namespace. The line on stderr names the account.
func TestANamespaceStopsAllItsRuns(t *testing.T) {
	d := newCloved(t)
	d.ok("budget", "set", "--at-end", "pause", "ns:acme/research", "reviews=10/month")
	d.detach("idle", "sleep 1000", "--agent-socket", "--namespace=acme/research")
	d.detach("elsewhere", "sleep 1000", "--agent-socket", "--namespace=acme")
	r := d.calls("--name=spends", "--agent-socket", "--namespace=acme/research")
	if b := budgetIn(t, r.call(api.MethodBudgetCharge, `{"amounts":{"reviews":8}}`), "reviews"); b.Used != 8 {
		t.Errorf("%+v", b)
	}
	r.request(api.MethodBudgetCharge, `{"amounts":{"reviews":3}}`)
	for _, name := range []string{"idle", "spends"} {
		until(t, name+" is frozen", func() bool { return d.frozen(name) })
	}
	if d.frozen("elsewhere") {
		t.Error("control: a run of another namespace is frozen")
	}
	d.ok("budget", "set", "--at-end", "pause", "ns:acme/research", "reviews=20/month")
	for _, name := range []string{"idle", "spends"} {
		until(t, name+" goes on", func() bool { return !d.frozen(name) })
	}
	r.answer()
	end := r.wait()
	for _, want := range []string{"8 of 10 reviews are used in 0/ns:acme/research\n", "11 of 10 reviews are used in 0/ns:acme/research; the run is paused until clove budget set gives"} {
		if !strings.Contains(end.stderr, want) {
			t.Errorf("%q is not in\n%s", want, end.stderr)
		}
	}
	if end.record.Version != 2 || end.record.Namespace != "acme/research" || end.record.Status != agent.StatusExited {
		t.Errorf("%+v", end.record)
	}
	if report := d.ok("budget", "report", "--csv"); !strings.Contains(report, ",0,reviews,11\n") {
		t.Errorf("%s", report)
	}
	if top := d.ok("budget", "top", "reviews"); !strings.HasPrefix(top, "DIMENSION") {
		t.Errorf("%s", top)
	}
	d.ok("rm", "-f", "idle", "elsewhere")
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
	return " of nobody"
}

// What a member of cloved's group wants done at a mark is done with the member's ids and
// none of root's groups; root's own command is root's. A URL gets the event.
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
			d.api(api.MethodBudgetCharge, map[string]any{"run": run, "amounts": map[string]int{"reviews": amount}}, nil)
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
