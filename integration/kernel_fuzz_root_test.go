//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/testhost"
)

// An agent writes whatever it can think of to its socket, on many connections at once:
// calls that fuzzLine has changed, huge numbers, deep nesting, text that is not UTF-8, half
// lines and half connections. cloved and the gate live on with the memory that they had,
// another agent is answered all the time, and so is this one in the end. CLOVE_SEED repeats
// what is written.
func TestTheSocketIsFuzzed(t *testing.T) {
	seed := numberOf(t, "CLOVE_SEED", int(time.Now().UnixNano()%1e9))
	// An agent of a test must end within patience, so a longer time is several agents.
	span := time.Duration(testhost.Sample(40, 4, 8)) * time.Second
	d := newCloved(t)
	for round := range testhost.Sample(5, 1, 1) {
		t.Logf("%v, CLOVE_SEED=%d", span, seed+round)
		fuzzSocket(t, d, span, seed+round)
	}
	for _, args := range [][]string{{"check"}, {"audit", "verify"}} {
		if r := d.clove(args...); r.code != 0 {
			t.Errorf("%v: %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// fuzzSocket is one agent's time.
func fuzzSocket(t *testing.T, d *cloved, span time.Duration, seed int) {
	t.Helper()
	other := d.calls("--name=other", "--budget=n=1000000")
	r := d.start(self("--name=fuzz", "--network=none", "--grant=tool:fetch", "--budget=n=100000", "--budget=reviews=100", "--at-end=refuse"),
		agentInside, agentWord, "mutate", span.String(), fmt.Sprint(seed))
	if line := r.line(); line != "up" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	gate := gateOf(t, r.cmd.Process.Pid)
	processes := map[string]int{"cloved": d.cmd.Process.Pid, "the gate": gate, "the supervisor": r.cmd.Process.Pid}
	early := map[string]int{}
	began := time.Now()
	for answered := 1; time.Since(began) < span; answered++ {
		if m := other.call(agents.BudgetCharge.Name, `{"amounts":{"n":1}}`); budgetIn(t, m, "n").Used != int64(answered) {
			t.Fatalf("another agent: %s", m.Result)
		}
		if len(early) == 0 && time.Since(began) > span/3 {
			for name, pid := range processes {
				early[name] = memoryOf(t, pid)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	line := r.line() // "LINES lines, ANSWERS answers, ends": it has had an answer afterwards
	t.Log(line)
	var lines, answers int
	if _, err := fmt.Sscanf(line, "%d lines, %d answers", &lines, &answers); err != nil || lines < fuzzLines || answers < fuzzAnswers {
		t.Errorf("control: %q\n%s", line, &r.stderr)
	}
	for name, pid := range processes {
		kib := memoryOf(t, pid) // fails if it has ended
		t.Logf("%s: %d KiB, after a third %d", name, kib, early[name])
		if kib > early[name]+gateMemory {
			t.Errorf("%s grows: %d KiB, after a third %d", name, kib, early[name])
		}
	}
	if now := gateOf(t, r.cmd.Process.Pid); now != gate {
		t.Error("the gate is another")
	}
	for _, b := range budgetsOf(t, d, "fuzz") {
		if b.Used < 0 || b.Reserved < 0 || b.Reserved > *b.Granted {
			t.Errorf("%+v", b)
		}
	}
	if end := r.wait(); end.record.Status != agent.StatusExited || end.code != 0 {
		t.Errorf("%s, exit %d\n%s", end.record.Status, end.code, end.stderr)
	}
	other.wait()
}

// budgetsOf are the limits of a run.
func budgetsOf(t *testing.T, d *cloved, name string) []api.Budget {
	t.Helper()
	var result api.BudgetResult
	d.api(agents.BudgetGet.Name, map[string]any{"run": name}, &result)
	return result.Budgets
}

// The least numbers of lines and answers: on a slow machine the agent goes on for longer.
const (
	fuzzLines   = 1000
	fuzzAnswers = 100
)

// fuzzing is what the connections of mutateLines share.
type fuzzing struct {
	end     time.Time
	lines   atomic.Int64
	answers atomic.Int64
}

// mutateLines writes mutated lines for some time, then makes one call that must be answered:
// mutate TIME SEED.
func mutateLines(args []string) error {
	span, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	fmt.Println("up")
	f := &fuzzing{end: time.Now().Add(span)}
	var all sync.WaitGroup
	const connections = 40 // more than the gate takes
	for i := range connections {
		all.Go(func() { f.write(rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	all.Wait()
	conn, err := ownSocket()
	if err != nil {
		return err
	}
	m, err := conn.exchange(agents.AgentGet.Name, []byte("{}"))
	if err != nil || len(m.Error) > 0 {
		return fmt.Errorf("it is not answered afterwards: %s, %w", m.Error, err)
	}
	fmt.Printf("%d lines, %d answers\n", f.lines.Load(), f.answers.Load())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (f *fuzzing) goesOn() bool {
	return time.Now().Before(f.end) || f.lines.Load() < fuzzLines || f.answers.Load() < fuzzAnswers
}

// write uses one connection after the other. The gate may end a
// connection; that is no failure.
func (f *fuzzing) write(dice *rand.Rand) {
	for f.goesOn() {
		conn, err := net.Dial("unix", agentSocketInside)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		var reading sync.WaitGroup
		if dice.IntN(4) > 0 { // the others do not read
			reading.Go(func() { f.read(conn) })
		}
		for range 1 + dice.IntN(60) {
			if _, err := conn.Write(fuzzLine(dice)); err != nil {
				break
			}
			f.lines.Add(1)
		}
		if dice.IntN(2) == 0 {
			_ = conn.(*net.UnixConn).CloseWrite()
			time.Sleep(time.Duration(dice.IntN(10)) * time.Millisecond)
		}
		conn.Close()
		reading.Wait()
	}
}

func (f *fuzzing) read(conn net.Conn) {
	decoder := json.NewDecoder(conn)
	for {
		var m json.RawMessage
		if decoder.Decode(&m) != nil {
			return
		}
		f.answers.Add(1)
	}
}

// fuzzSeeds are calls that work, of each method that an agent may call.
var fuzzSeeds = []string{
	whoami,
	`{"jsonrpc":"2.0","id":"a\u0041","method":"budget.charge","params":{"amounts":{"reviews":1},"key":"k"}}`,
	`{"jsonrpc":"2.0","id":2,"method":"budget.reserve","params":{"amounts":{"reviews":1,"n":2}}}`,
	`{"jsonrpc":"2.0","id":3,"method":"budget.settle","params":{"reservation":"0123456789abcdef","amounts":{"n":1}}}`,
	`{"jsonrpc":"2.0","id":4,"method":"budget.release","params":{"reservation":"0123456789abcdef"}}`,
	`{"jsonrpc":"2.0","id":5,"method":"budget.get"}`,
	`{"jsonrpc":"2.0","id":6,"method":"grant.list","params":{"after":"x"}}`,
	`{"jsonrpc":"2.0","id":7,"method":"grant.check","params":{"what":"tool:fetch"}}`,
	`{"jsonrpc":"2.0","id":8,"method":"grant.derive","params":{"from":"0123456789abcdef","grant":"tool:fetch","expires":"2030-01-01T00:00:00Z","uses":1}}`,
	`{"jsonrpc":"2.0","id":9,"method":"grant.revoke","params":{"id":"0123456789abcdef"}}`,
	`{"jsonrpc":"2.0","id":10,"method":"agent.listen","params":{}}`,
	`{"jsonrpc":"2.0","id":11,"method":"request.cancel","params":{"id":1}}`,
}

// fuzzParts are put into lines at any place.
var fuzzParts = []string{"\xff", "\xc0\xaf", "\xed\xa0\x80", "\x00", "\u202e", `"`, `\`, `\ud800`, "{", "}", "[", "]", ",", ":", "null", "1e999999", "-1", "9223372036854775808", "18446744073709551616", "0.1",
	"\r", "\n", strings.Repeat("9", 5000), strings.Repeat("[", 500), strings.Repeat(`{"a":`, 500), strings.Repeat("é", 300), `"id":1,`, `"ID":1,`, `"__proto__":{},`, "true", "NaN", "Infinity", "\ufeff"}

// fuzzLine is a line, or what is none.
func fuzzLine(dice *rand.Rand) []byte {
	line := []byte(fuzzSeeds[dice.IntN(len(fuzzSeeds))])
	switch dice.IntN(12) {
	case 0: // as it is
	case 1:
		line = []byte(strings.Repeat("[", 1+dice.IntN(api.MaxAgentLine)))
	case 2:
		line = append(line, strings.Repeat(" ", dice.IntN(2*api.MaxAgentLine))...)
	case 3:
		line = line[:dice.IntN(len(line))]
	case 4:
		line = []byte("[" + string(line) + "," + string(line) + "]")
	case 5:
		for i := range line {
			line[i] = byte(dice.Uint32())
		}
	default:
		for range 1 + dice.IntN(4) {
			line = mutated(dice, line)
		}
	}
	if dice.IntN(20) == 0 {
		return line // the next one follows in the same line
	}
	return append(line, '\n')
}

// mutated changes a place of a line.
func mutated(dice *rand.Rand, line []byte) []byte {
	at := dice.IntN(len(line) + 1)
	part := fuzzParts[dice.IntN(len(fuzzParts))]
	end := min(len(line), at+dice.IntN(8))
	switch dice.IntN(3) {
	case 0:
		return append(append(append([]byte{}, line[:at]...), part...), line[at:]...)
	case 1:
		return append(append(append([]byte{}, line[:at]...), part...), line[end:]...)
	}
	if at < len(line) {
		line[at] ^= 1 << dice.IntN(8)
	}
	return line
}
