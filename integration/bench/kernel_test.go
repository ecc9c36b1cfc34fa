package main

import (
	"clove.run/clove/kernel/service"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/socket"
	"clove.run/clove/store"
)

func TestKernelTable(t *testing.T) {
	text := table(&results{Shared: &shared{Absent: map[string]string{ledgerRedis: "it is not there"}, Figures: []kernelFigure{
		{What: whatReserve, Peer: ledgerClove, Unit: unitMS, Values: spread{P50: 1.5, P95: 2, P99: 20}, Aim: "3"},
		{What: whatReserve, Peer: ledgerSQLite, Unit: unitMS, Values: spread{P50: 0.75, P95: 0.8, P99: 120}, Ratio: &ratio{0.5, 0.25, 0.75}},
	}}})
	for _, want := range []string{"a durable reservation  ms    clove   1.5   2.0  20.0  -                              3\n",
		"                             SQLite  0.75  0.8  120   0.50 (0.25 to 0.75)            -\n", "\nSQLite: a file in a folder", "Redis was not measured: it is not there\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

// The first peer of a row is what the others are divided by; the gain of many callers is
// each peer's own.
func TestLedgersAreComparedToTheFirst(t *testing.T) {
	w := &ledgers{peers: []*ledgerPeer{{name: ledgerClove}, {name: ledgerSQLite}}}
	figures := w.judge(map[string]*ledgerSamples{
		ledgerClove:  {checks: taken{{1}, {3}}, reserves: taken{{2}, {2}}, rate1: []float64{100, 200}, rate64: []float64{1000, 1000}},
		ledgerSQLite: {reserves: taken{{1}, {1}}, rate1: []float64{50, 50}, rate64: []float64{50, 100}},
	})
	var got []string
	for _, f := range figures {
		got = append(got, strings.TrimSpace(strings.Join([]string{f.What, f.Peer, short(f.Values.P50), f.Ratio.String()}, "; ")))
	}
	if want := "a grant check; clove; 1.0; -|a durable reservation; clove; 2.0; -|a durable reservation; SQLite; 1.0; 0.50 (0.50 to 0.50)|" +
		"durable changes, 1 caller; clove; 100; -|durable changes, 1 caller; SQLite; 50.0; 0.50 (0.25 to 0.50)|durable changes, 64 callers; clove; 1000; -|" +
		"durable changes, 64 callers; SQLite; 50.0; 0.05 (0.05 to 0.10)|64 callers to 1; clove; 5.0; -|64 callers to 1; SQLite; 1.0; 0.20 (0.10 to 0.40)"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "|"), want)
	}
}

// The agent's client works with the code of the gate and of the kernel.
func TestAgentSocketSpends(t *testing.T) {
	b := unprivileged(t)
	k, err := b.openKernel("kernel")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	run := agent.Run{Spec: idleSpec("worker")}
	run.Spec.Kernel = agent.Kernel{Grants: []string{checked}, Budgets: []string{spent + "=1000"}}
	if err := k.Attach(context.Background(), run, true, func(api.Standing) {}); err != nil {
		t.Fatal(err)
	}
	path := serveAgent(t, k.Kernel, run)
	a := &agentSocket{path: path}
	if took, err := a.check(3); err != nil || len(took) != 3 {
		t.Errorf("%v, %v", took, err)
	}
	if err := a.flood(ledgerCallers, time.Now().Add(10*time.Millisecond)); err != nil {
		t.Error(err)
	}
	for _, callers := range []int{1, ledgerCallers} {
		if took, err := a.spend(callers, 4); err != nil || len(took) != callers*2 {
			t.Errorf("%d reservations, %v", len(took), err)
		}
	}
	if problems, err := k.file.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// serveAgent serves a socket as a gate and a supervisor do.
func serveAgent(t *testing.T, k *kernel.Kernel, run agent.Run) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent.sock")
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := listener.(*net.UnixListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }); err != nil {
		t.Fatal(err)
	}
	calls, file, err := channel.Pair()
	if err != nil {
		t.Fatal(err)
	}
	gate := channel.New(file)
	server := socket.New(gate, uint32(os.Getuid()), 1)
	go server.Accept(listener.(*net.UnixListener))
	go server.Receive()
	go func() {
		for {
			var m channel.FromGate
			if calls.Receive(&m) != nil {
				return
			}
			go func() {
				result, err := k.Call(t.Context(), service.Caller{Run: run, Agent: true}, service.Request{Method: m.Call.Method, Text: m.Call.Params})
				a := &channel.Answer{Number: m.Call.Number, Result: result}
				if err != nil {
					a.Error = api.ErrorOf(err)
				}
				_ = calls.Send(channel.ToGate{Answer: a}) // the test ends
			}()
		}
	}()
	t.Cleanup(func() { listener.Close(); calls.Close(); gate.Close() })
	return path
}

// Python's module spends as the others do.
func TestSQLiteSpends(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
	s := &spender{folder: t.TempDir(), open: map[string]ledger{}}
	for _, callers := range []int{1, 8} {
		if r := s.obey(ledgerOrder{Ledger: ledgerSQLite, Callers: callers, Turns: 4}); r.Error != "" || len(r.MS) != callers*2 || r.Seconds <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if r := s.obey(ledgerOrder{Ledger: "nonsense"}); r.Error == "" {
		t.Error("a ledger that there is not spends")
	}
}

// What is invented of other agents could be a cloved's.
func TestSharedPast(t *testing.T) {
	d := unprivileged(t).newCloved("past")
	if err := d.remember(12); err != nil {
		t.Fatal(err)
	}
	if err := d.share(); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenKernel(filepath.Join(d.state, "kernel.db"), time.Minute, kernel.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if problems, err := file.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	var accounts int
	err = file.Read(func(tx *store.KernelTx) error {
		all, err := tx.Accounts("")
		accounts = len(all)
		return err
	})
	if err != nil || accounts != 12 {
		t.Errorf("%d accounts, %v", accounts, err)
	}
}

func TestStoreAndReservations(t *testing.T) {
	b := unprivileged(t)
	s := &shared{Figures: []kernelFigure{{What: whatCheck, Peer: ledgerClove, Values: spread{P50: 1}}}}
	if err := b.measureStore(s); err != nil {
		t.Fatal(err)
	}
	if err := b.measureReservations(s); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if last := s.Figures[len(s.Figures)-1]; len(s.Figures) != 6 || last.Values.P50 <= 1 || last.Aim != "0.5" {
		t.Errorf("%s", text)
	}
}

func TestBusyOf(t *testing.T) {
	got, err := busyOf([]byte("cpu  100 20 30 4000 500 6 7 8 50 0\ncpu0 1\n"))
	if err != nil || got != 1.71 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := busyOf([]byte("cpu0 1")); err == nil {
		t.Error("a line of one processor is that of all")
	}
}

func TestBurn(t *testing.T) {
	s := &spender{}
	if r := s.obey(ledgerOrder{Burn: 0.5, Seconds: 0.01}); r.Error != "" || r.Seconds < 0.01 || len(r.MS) != 0 {
		t.Errorf("%+v", r)
	}
}
