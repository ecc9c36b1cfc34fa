package main

import (
	"context"
	"errors"
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
	"clove.run/clove/audit"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/socket"
	"clove.run/clove/store"
)

// The first peer of a row is what the others are divided by; the gain of many callers is
// each peer's own.
func TestLedgersAreComparedToTheFirst(t *testing.T) {
	figures := judgeLedgers(samples{
		whatCheck:   {ledgerClove: {{1}, {3}}},
		whatReserve: {ledgerClove: {{2}, {2}}, ledgerSQLite: {{1}, {1}}},
		whatRate1:   {ledgerClove: {{100}, {200}}, ledgerSQLite: {{50}, {50}}},
		whatRate64:  {ledgerClove: {{1000}, {1000}}, ledgerSQLite: {{50}, {100}}},
	})
	var got []string
	for _, f := range figures {
		got = append(got, strings.TrimSpace(strings.Join([]string{f.What, f.Peer, short(f.Values.P50), f.ratioText()}, "; ")))
	}
	if want := "a grant check; clove; 1.0;|a durable reservation; clove; 2.0;|a durable reservation; SQLite; 1.0; 0.50 (0.50 to 0.50) to clove|" +
		"durable changes, 1 caller; clove; 100;|durable changes, 1 caller; SQLite; 50.0; 0.50 (0.25 to 0.50) to clove|durable changes, 64 callers; clove; 1000;|" +
		"durable changes, 64 callers; SQLite; 50.0; 0.05 (0.05 to 0.10) to clove|64 callers to 1; clove; 5.0;|64 callers to 1; SQLite; 1.0; 0.20 (0.10 to 0.40) to clove"; strings.Join(got, "|") != want {
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

// benchKernel is a Kernel with files of its own.
type benchKernel struct {
	*kernel.Kernel
	file *store.Kernel
	log  *audit.Log
}

func (b *bench) openKernel(name string, runs ...agent.Run) (*benchKernel, error) {
	dir := filepath.Join(b.scratch, name)
	file, err := store.OpenKernel(filepath.Join(dir, "kernel.db"), time.Second, kernel.Tables()...)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.RunOptions())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	config := kernel.Config{Store: file, Log: log}
	for _, run := range runs { // the only one
		config.Find = func(uint32, string) (agent.Run, bool) { return run, true }
		config.Run = func(agent.ID) (agent.Run, bool) { return run, true }
	}
	k, err := kernel.New(config)
	return &benchKernel{k, file, log}, err
}

func (k *benchKernel) Close() error {
	return errors.Join(k.Kernel.Close(), k.log.Close(), k.file.Close())
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
		if r := s.obey(ledgerOrder{Ledger: ledgerSQLite, Callers: callers, Turns: 4}); r.Error != "" || len(r.Values) != callers*2 || r.Seconds <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if r := s.obey(ledgerOrder{Ledger: "nonsense"}); r.Error == "" {
		t.Error("a ledger that there is not spends")
	}
}

// The invented rows of other agents could be those of a real cloved.
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
		all, err := store.Accounts.Under(tx, "")
		accounts = len(all)
		return err
	})
	if err != nil || accounts != 12 {
		t.Errorf("%d accounts, %v", accounts, err)
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
	if r := s.obey(ledgerOrder{Burn: 0.5, Seconds: 0.01}); r.Error != "" || r.Seconds < 0.01 || len(r.Values) != 0 {
		t.Errorf("%+v", r)
	}
}
