package audit

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"clove.run/clove/agent"
)

// chained is a log in which each of some calls follows from the one before, far apart, of a run that another
// call made.
func chained(t *testing.T, calls, apart int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, small())
	add := func(entries ...Entry) { _, err := l.Append(entries...); must(t, err) }
	add(Entry{Kind: KindAdmin, Principal: PrincipalUser(7), Method: "run.start", Object: "worker", Verdict: VerdictAllow, Correlation: "made"},
		Entry{Kind: KindStart, Run: "worker", Method: "started"},
		Entry{Kind: KindDecision, Run: "forger", Principal: PrincipalRun("forger"), Object: "worker", Verdict: "not-found", Correlation: "forged"})
	for i := range calls {
		var others []Entry
		for at := range apart {
			others = append(others, decision(fmt.Sprint("other ", i, at)))
		}
		add(others...)
		e := Entry{Kind: KindDecision, Run: "worker", Principal: PrincipalRun("worker"), Method: "event.append", Verdict: VerdictAllow, Correlation: fmt.Sprintf("call-%03d", i)}
		if i > 0 {
			e.Causation = fmt.Sprintf("call-%03d", i-1)
		}
		add(e)
	}
	must(t, l.Close())
	return dir
}

// walked are the ids of a chain that begins with a call.
func walked(t *testing.T, c *Chain, call string) (ids []string) {
	t.Helper()
	e, found, err := c.Call(call)
	for ; found && len(ids) < 200; e, found, err = c.Cause(e) {
		must(t, err)
		ids = append(ids, string(e.Kind)+" "+e.Correlation)
	}
	must(t, err)
	return ids
}

// A chain leads through many segments to the start of the run and to the call that made it, and to nothing that
// only names the run.
func TestChainsLeadToTheirRoot(t *testing.T) {
	t.Parallel()
	dir := chained(t, 40, 60)
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 3 {
		t.Fatalf("control: %d segments, %v", len(segments), err)
	}
	c := &Chain{Dir: dir, Most: math.MaxInt64}
	ids := walked(t, c, "call-039")
	if len(ids) != 42 || ids[0] != "decision call-039" || !slices.Equal(ids[39:], []string{"decision call-000", "start ", "admin made"}) {
		t.Errorf("%d: %v", len(ids), ids)
	}
	if again := walked(t, c, "call-039"); !slices.Equal(again, ids) {
		t.Error("a chain that was at the beginning finds another end: ", again)
	}
	if _, found, err := c.Call("call-04"); found || err != nil {
		t.Errorf("a part of an id is one: %v", err)
	}
}

// What a caller may not see is not there, and no more of the log is read than the bound allows.
func TestChainsHaveBounds(t *testing.T) {
	t.Parallel()
	dir := chained(t, 3, 100)
	c := &Chain{Dir: dir, Most: math.MaxInt64, May: func(e Entry) bool { return e.Correlation != "call-001" }}
	if ids := walked(t, c, "call-002"); !slices.Equal(ids, []string{"decision call-002"}) {
		t.Error(ids)
	}
	hidden, missing := &Chain{Dir: dir, Most: 1 << 40, May: c.May}, &Chain{Dir: dir, Most: 1 << 40}
	_, one, _ := hidden.Call("call-001")
	_, other, _ := missing.Call("call-999")
	if one || other || hidden.Most != missing.Most {
		t.Errorf("what is hidden costs %d, and what is not there %d", 1<<40-hidden.Most, 1<<40-missing.Most)
	}
	short := &Chain{Dir: dir, Most: 2000}
	if _, _, err := short.Call("call-000"); !errors.Is(err, ErrDeep) {
		t.Errorf("got %v", err)
	}
	if _, found, err := (&Chain{Dir: t.TempDir(), Most: 1}).Call("call-000"); found || err != nil {
		t.Errorf("a log without records: %v", err)
	}
}

// An entry that is queued is found, and a cause that is recorded behind what follows from it; a line behind the
// head is no record.
func TestChainsFindWhatIsRecordedLate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, small())
	with(t, l, Entry{Kind: KindDecision, Principal: PrincipalRun("a"), Verdict: VerdictAllow, Correlation: "carried", Causation: "carrier"})
	for range 3 {
		_, err := l.Append(slices.Repeat([]Entry{decision("other")}, 100)...)
		must(t, err)
	}
	with(t, l, Entry{Kind: KindDecision, Principal: PrincipalRun("a"), Verdict: VerdictAllow, Correlation: "carrier"})
	must(t, l.Close())
	c := &Chain{Dir: dir, Most: math.MaxInt64, Queued: []Entry{{Correlation: "queued", Causation: "carried", Run: agent.ID("a")}}}
	if ids := walked(t, c, "queued"); !slices.Equal(ids, []string{" queued", "decision carried", "decision carrier"}) {
		t.Error(ids)
	}
	segments, err := segmentsOf(dir)
	must(t, err)
	e := Entry{Kind: KindDecision, Correlation: "unwritten"}
	line, _, err := e.line(999, [32]byte{})
	must(t, err)
	file, err := os.OpenFile(segments[len(segments)-1].path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = file.Write(line)
	must(t, errors.Join(err, file.Close()))
	if _, found, err := (&Chain{Dir: dir, Most: math.MaxInt64}).Call("unwritten"); found || err != nil {
		t.Errorf("a line behind the head is a record: %v", err)
	}
}

// What follows from a record is found below it, over segments and where it was recorded before its cause, and
// nothing else. The bounds say that there is more.
func TestEffectsFollowFromTheirCause(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, small())
	call := func(run, id, cause, object string) Entry {
		return Entry{Kind: KindDecision, Run: agent.ID(run), Principal: PrincipalRun(agent.ID(run)), Method: "m", Verdict: VerdictAllow, Correlation: id, Causation: cause, Object: object}
	}
	must1 := func(all ...Entry) { _, err := l.Append(all...); must(t, err) }
	must1(Entry{Kind: KindAdmin, Principal: PrincipalUser(7), Method: "run.start", Object: "one", Verdict: VerdictAllow, Correlation: "made"},
		Entry{Kind: KindStart, Run: "one", Method: "started"}, Entry{Kind: KindStart, Run: "two", Method: "started"}, call("one", "ask", "", "box/1"), call("two", "alone", "", ""))
	for range 30 {
		must1(slices.Repeat([]Entry{decision("other")}, 100)...)
	}
	must1(call("two", "carried", "ack", "box/2"), call("three", "answer", "carried", ""), call("two", "ack", "ask", "box/1"), call("one", "spawn", "ask", "child"),
		Entry{Kind: KindStart, Run: "child", Method: "started"}, call("child", "did", "", ""), Entry{Kind: KindEnd, Run: "child", Method: "ended"}, call("three", "forged", "none", "child"))
	must(t, l.Close())
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 2 {
		t.Fatalf("control: %d segments, %v", len(segments), err)
	}
	effects := func(id string, steps, most int) (ids []string, more bool) {
		c := &Chain{Dir: dir, Most: math.MaxInt64, May: func(e Entry) bool { return e.Correlation != "hidden" }}
		e, found, err := c.Call(id)
		must(t, err)
		if !found {
			t.Fatal(id)
		}
		all, more, err := c.Effects(e, steps, most)
		must(t, err)
		for _, e := range all {
			ids = append(ids, fmt.Sprint(e.Depth, " ", e.Kind, " ", e.Correlation))
		}
		return ids, more
	}
	want := []string{"0 decision ask", "1 decision ack", "2 decision carried", "3 decision answer", "1 decision spawn", "2 start ", "3 decision did", "3 end "}
	if got, more := effects("ask", 10, 100); !slices.Equal(got, want) || more {
		t.Errorf("%q, %v", got, more)
	}
	if got, more := effects("made", 1, 100); !slices.Equal(got, []string{"0 admin made", "1 start "}) || !more {
		t.Errorf("%q, %v", got, more)
	}
	if got, more := effects("made", 10, 100); len(got) != 2+len(want) || more {
		t.Errorf("%q, %v", got, more)
	}
	if got, more := effects("ask", 10, 3); len(got) != 3 || !more {
		t.Errorf("%q, %v", got, more)
	}
	if got, _ := effects("alone", 10, 100); !slices.Equal(got, []string{"0 decision alone"}) {
		t.Errorf("%q", got)
	}
}
