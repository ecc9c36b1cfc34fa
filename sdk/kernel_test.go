package sdk

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/socket"
)

// desk serves an agent's socket with the code of clove-gate and of a foreground run, without
// a sandbox around the agent.
type desk struct {
	path  string
	own   *kernel.Own
	calls *channel.Conn
	call  func(method string, params json.RawMessage) (json.RawMessage, error) // what serves calls

	mu    sync.Mutex // guards spent
	spent []api.Budget
}

// serve makes a desk for a run with this part in what agents share.
func serve(t *testing.T, shared agent.Kernel) *desk {
	t.Helper()
	dir := t.TempDir()
	calls, file, err := channel.Pair()
	if err != nil {
		t.Fatal(err)
	}
	gate := channel.New(file)
	d := &desk{path: filepath.Join(dir, "agent.sock"), calls: calls, own: &kernel.Own{
		Dir:   func(agent.ID) string { return dir },
		Audit: func(agent.ID) string { return filepath.Join(dir, "audit") },
	}}
	run := agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "worker", Kernel: shared}, State: agent.StateRunning}
	if err := d.own.Attach(t.Context(), run, d.changed); err != nil {
		t.Fatal(err)
	}
	d.call = func(method string, params json.RawMessage) (json.RawMessage, error) {
		return d.own.Call(context.Background(), "", method, params)
	}
	d.open(t, gate)
	return d
}

// open serves the socket of a desk until the test ends.
func (d *desk) open(t *testing.T, gate *channel.Conn) {
	server := socket.New(gate, uint32(os.Getuid()), 1)
	listener := listen(t, d.path)
	var done sync.WaitGroup
	done.Go(func() { server.Accept(listener) })
	done.Go(func() { _ = server.Receive() }) // ends with the channel
	done.Go(d.answer)
	t.Cleanup(func() {
		listener.Close()
		d.calls.Close()
		gate.Close()
		done.Wait()
		if d.own == nil {
			return
		}
		if err := d.own.Close(); err != nil {
			t.Error(err)
		}
	})
}

// listen opens the socket as a launch does: credentials are on before the first connection.
func listen(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1),
		unix.Bind(fd, &unix.SockaddrUnix{Name: path}),
		unix.Listen(fd, 64),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	return listener.(*net.UnixListener)
}

// changed keeps what is spent, and passes notifications on.
func (d *desk) changed(now api.Standing) {
	d.mu.Lock()
	d.spent = now.Spent
	d.mu.Unlock()
	for _, n := range now.Notices {
		_ = d.calls.Send(channel.ToGate{Notice: &channel.Notice{Notice: n}}) // fails at the test's end only
	}
}

// answer serves calls, one after the other, until the channel ends.
func (d *desk) answer() {
	for {
		var m channel.FromGate
		if d.calls.Receive(&m) != nil {
			return
		}
		if m.Call == nil {
			continue
		}
		result, err := d.call(m.Call.Method, m.Call.Params)
		a := channel.Answer{Number: m.Call.Number, Result: result}
		if err != nil {
			a = channel.Answer{Number: m.Call.Number, Error: api.ErrorOf(err)}
		}
		_ = d.calls.Send(channel.ToGate{Answer: &a}) // fails at the test's end only
	}
}

// TestExamples runs each example in both languages against the agent socket's own code.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, example := range []struct {
		name   string
		shared agent.Kernel
		want   string
	}{
		{"budget_agent", agent.Kernel{Budgets: []string{"tokens=1000"}, AtEnd: "refuse"},
			"chapter One took 260 tokens\nchapter Two took 240 tokens\nchapter Three took 310 tokens\nchapter Four has to wait: budget\n" +
				"warned: tokens reached 800\nused 810 of 1000 tokens\n"},
		{"grant_agent", agent.Kernel{Grants: []string{"tool:fetch"}},
			"tool:fetch: yes\ntool:write: no\nderived tool:fetch for 1 use\nmore than that: denied\nrevoked 1, left 1\n"},
	} {
		t.Run(example.name+".py", func(t *testing.T) {
			t.Parallel()
			d := serve(t, example.shared)
			got := python(t, []string{"PYTHONPATH=.", "CLOVE_AGENT_SOCKET=" + d.path}, "../../examples/"+example.name+".py")
			if got != example.want {
				t.Errorf("it printed\n%s\nand not\n%s", got, example.want)
			}
		})
		t.Run(example.name+".mjs", func(t *testing.T) {
			t.Parallel()
			d := serve(t, example.shared)
			got := program(t, ".", []string{"CLOVE_AGENT_SOCKET=" + d.path}, "node", withNode(t, "../examples/"+example.name+".mjs"))
			if got != example.want {
				t.Errorf("it printed\n%s\nand not\n%s", got, example.want)
			}
		})
	}
}

// TestCommandLineSpendsABudget charges more than there is, as an agent may for what has
// happened, and gets the warning once.
func TestCommandLineSpendsABudget(t *testing.T) {
	t.Parallel()
	d := serve(t, agent.Kernel{Budgets: []string{"tokens=1000"}})
	env := []string{"CLOVE_AGENT_SOCKET=" + d.path}
	for _, amount := range []string{"800", "150", "100"} {
		python(t, env, "-m", "clove", "budget", "charge", "tokens="+amount)
	}
	out := python(t, env, "-m", "clove", "agent", "listen", "timeout=5")
	if strings.Count(out, "budget.warning") != 1 {
		t.Errorf("the notifications are\n%s", out)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.spent) != 1 || d.spent[0].Peak != 1050 || d.spent[0].AtEnd != "end" {
		t.Errorf("spent is %+v", d.spent)
	}
}

// TestTheGateClosesSilentConnections: the client does not notice, because it connects again.
func TestTheGateClosesSilentConnections(t *testing.T) {
	t.Parallel()
	d := serve(t, agent.Kernel{Socket: true})
	began := time.Now()
	python(t, []string{"CLOVE_AGENT_SOCKET=" + d.path}, "-c", `
import clove
agents = [clove.connect() for _ in range(40)]
for agent in agents + agents:
    assert agent.get().name == "worker"
`)
	if time.Since(began) < time.Second {
		t.Error("control: no connection was silent for as long as the gate wants before it closes one")
	}
}
