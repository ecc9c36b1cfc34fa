//go:build root

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/client"
)

// records are those that clove audit query shows.
func records(t *testing.T, r result) (all []audit.Entry) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%d, %s", r.code, r.stderr)
	}
	for line := range strings.Lines(r.stdout) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// cloved starts on a disk on which the audit log has no space for its first segment. It
// refuses what needs a record, runs agents that share nothing, and records their ends. The
// control is the same cloved when there is space.
func TestAFullDiskLetsClovedStart(t *testing.T) {
	disk := smallDisk(t, "tmpfs", "clove-test", "size=23m,mode=711")
	d := newCloved(t)
	set := func() error {
		c, err := client.Dial(context.Background(), d.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = client.Do(context.Background(), c, methods.BudgetSet, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=1"}})
		return err
	}
	if err := set(); err == nil || api.ErrorOf(err).Code != api.CodeStorage {
		t.Errorf("a decision: %v", err)
	}
	if r := d.clove("run", "-d", "--name", "shares", "--budget=reviews=1", "--disk", "16M", "--", "true"); r.code == 0 {
		d.clove("wait", "shares")
		if run := d.inspect("shares"); run.Record == nil || run.Record.Error == nil || !strings.Contains(run.Record.Error.Message, "no space") {
			t.Errorf("a run with a budget: %+v", run.Record)
		}
	} else if !strings.Contains(r.stderr, "no space") {
		t.Error(r.stderr)
	}
	if r := d.clove("run", "--name", "plain", "--disk", "16M", "--", "true"); r.code != 0 {
		t.Errorf("a run: %d, %s", r.code, r.stderr)
	}
	until(t, "the end is recorded", func() bool {
		return len(records(t, d.clove("audit", "query", "--kind", "end", "--text", `"plain"`, "--json"))) == 1
	})
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT, "size=96m"); err != nil {
		t.Fatal(err)
	}
	if err := set(); err != nil {
		t.Errorf("with space: %v", err)
	}
	d.ok("audit", "verify")
}

// A member sees the records of its own runs, root all, other users none. Only root may verify
// and prove.
func TestAMemberSeesItsOwnRecords(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	d.ok("run", "--name", "roots", "--", "true")
	if r := d.as(memberUID, group, "run", "--name", "mine", "--grant", "tool:fetch", "--", "true"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	var mine []audit.Entry
	until(t, "the end is recorded", func() bool {
		mine = records(t, d.as(memberUID, group, "audit", "query", "--json"))
		return len(mine) > 0 && mine[len(mine)-1].Kind == audit.KindEnd
	})
	seen := map[audit.Kind]bool{}
	for _, e := range mine {
		seen[e.Kind] = true
		if e.Owner != memberUID || e.Agent == "roots" {
			t.Errorf("it sees %+v", e)
		}
	}
	if !seen[audit.KindStart] || !seen[audit.KindEnd] || !seen[audit.KindAdmin] {
		t.Errorf("%v", seen)
	}
	if all := records(t, d.clove("audit", "query", "--json")); len(all) <= len(mine) {
		t.Errorf("control: root sees %d records, a member %d", len(all), len(mine))
	}
	if others := records(t, d.as(otherUID, group, "audit", "query", "--json")); len(others) != 0 {
		t.Errorf("another member sees %+v", others)
	}
	if r := d.as(memberUID, group, "audit", "tail", "--last", "1"); r.code != 0 || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("%d, %q, %s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"verify"}, {"prove", "1"}, {"query", "--owner", "0"}} {
		if r := d.as(memberUID, group, append([]string{"audit"}, args...)...); r.code == 0 {
			t.Errorf("a member may %q: %s", args, r.stdout)
		}
	}
	if r := d.as(strangerUID, nil, "audit", "query"); r.code == 0 || r.stdout != "" {
		t.Errorf("a stranger: %d, %q", r.code, r.stdout)
	}
	var starts int
	for _, e := range mine {
		if e.Kind == audit.KindStart {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d records of one start", starts)
	}
}

// An agent that has its calls refused as fast as it can writes a bounded number of records,
// and the log says how many there were.
func TestRefusalsAreBounded(t *testing.T) {
	d := newCloved(t)
	r := d.calls("--name=flood", "--agent-socket")
	const calls = 600
	for i := range calls {
		if m := r.call(agents.BudgetCharge.Name, fmt.Sprintf(`{"amounts":{"cpu_ms":%d}}`, i)); !refusedWith(m, api.CodeDenied) {
			t.Fatalf("%+v", m)
		}
	}
	counted, written := uint64(0), 0
	until(t, "all are written or counted", func() bool {
		counted, written = 0, 0
		for _, e := range records(t, d.clove("audit", "query", "--text", `"flood"`, "--json")) {
			if e.Kind == audit.KindGap {
				counted += e.Count
			} else if e.Method == agents.BudgetCharge.Name && e.Verdict == audit.VerdictDeny && e.Digest != "" && strings.HasPrefix(e.What, "cpu_ms=") {
				written++
			}
		}
		return written+int(counted) == calls
	})
	if counted == 0 || written < 100 {
		t.Errorf("%d are written, %d counted", written, counted)
	}
	d.ok("audit", "verify")
}
