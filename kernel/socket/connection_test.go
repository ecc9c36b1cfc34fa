package socket

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// A call reaches the supervisor with the parameters' own type encoded anew, and its answer
// has the id that the agent gave it.
func TestCallsAreTyped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.dial()
	must(t, p.send(` {"params" : {"amounts":{"b":2,"a":1},"key":"\u0061"},"method":"budget.charge","id":"one\u0021","jsonrpc":"2.0"} `))
	c := r.call()
	if c.Method != agents.BudgetCharge.Name || string(c.Params) != `{"run":"","amounts":{"a":1,"b":2},"key":"a"}` {
		t.Errorf("%s %s", c.Method, c.Params)
	}
	r.answer(c.Number, `{"budgets":[]}`)
	p.wantResult(`"one\u0021"`, `{"budgets":[]}`)
	// No client reads the answer to a call without an id, so the next one is that of the next.
	must(t, p.send(`{"jsonrpc":"2.0","method":"agent.get"}`))
	r.answer(r.call().Number, `{"unread":true}`)
	r.works(p)
}

// A line that is no call of an agent's is answered here, and the connection goes on.
func TestWhatIsNoCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.dial()
	deep := func(n int) string {
		return request(1, agents.AgentGet.Name, strings.Repeat(`{"a":`, n-1)+"1"+strings.Repeat("}", n-1))
	}
	for _, row := range []struct {
		line, id string
		code     api.Code
	}{
		{"", "null", api.CodeParse},
		{"nonsense", "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"method":"agent.get"`, "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"method":"agent.get"} {}`, "null", api.CodeParse},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.\xff\"}", "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"agent.get"}`, "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"ID":2,"method":"agent.get"}`, "null", api.CodeParse},
		{"[" + request(1, agents.AgentGet.Name, "{}") + "]", "null", api.CodeRequest},
		{"[]", "null", api.CodeRequest},
		{`{"jsonrpc":"1.0","id":1,"method":"agent.get"}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":{},"method":"agent.get"}`, "null", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1}`, "1", api.CodeRequest},
		{request(1, "nonsense", "{}"), "1", api.CodeMethod},
		{request(1, methods.RunList.Name, "{}"), "1", api.CodeMethod},
		{request(1, methods.BudgetRaise.Name, `{"amounts":{"a":1}}`), "1", api.CodeMethod},
		{request(1, methods.KernelCall.Name, "{}"), "1", api.CodeMethod},
		{request(1, agents.AgentGet.Name, `{"unknown":1}`), "1", api.CodeParams},
		{request(1, agents.AgentGet.Name, `{"run":5}`), "1", api.CodeParams},
		{request(1, agents.AgentListen.Name, `{"unknown":1}`), "1", api.CodeParams},
		{deep(maxDepth + 1), "null", api.CodeParse},
		{deep(maxDepth), "1", api.CodeParams}, // the control: it is read, and then no parameter
	} {
		must(t, p.send(row.line))
		p.wantError(row.id, row.code)
		r.wantNothing()
	}
	r.works(p)
}

// A line may have api.MaxAgentLine bytes and not one more, however it is cut into parts. A
// longer one is answered, and ends the connection: where the next line begins is not known.
func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	call := request(1, agents.AgentGet.Name, "{}")
	for _, part := range []int{1 << 20, 4096, 1000} {
		for over := -1; over <= 1; over++ {
			t.Run(fmt.Sprintf("%d bytes at once, %d", part, over), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				p := r.dial()
				text := call + strings.Repeat(" ", api.MaxAgentLine-len(call)+over) + "\n"
				for len(text) > 0 {
					n := min(part, len(text))
					if _, err := p.Write([]byte(text[:n])); err != nil && over <= 0 {
						t.Fatal(err)
					}
					text = text[n:]
				}
				if over <= 0 {
					r.answer(r.call().Number, "{}")
					p.wantResult("1", "{}")
					return
				}
				p.wantError("null", api.CodeTooLarge)
				p.wantEnd()
				r.wantNothing()
			})
		}
	}
}

// A line without an end is refused when it is too long, and takes no more memory.
func TestALineWithoutAnEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.dial()
	for {
		if _, err := p.Write(make([]byte, 8<<10)); err != nil {
			break // the server has read enough
		}
	}
	p.wantError("null", api.CodeTooLarge)
	p.wantEnd()
}

// Bytes of another user end the connection before any of them is read. The control is the
// same connection for the user that sends.
func TestForeignBytesEndTheConnection(t *testing.T) {
	t.Parallel()
	own := newRig(t)
	own.works(own.dial())
	foreign := newRigFor(t, uint32(os.Getuid())+1)
	p := foreign.dial()
	_ = p.send(request(1, agents.AgentGet.Name, "{}")) // it may be cut already
	if n := p.wantEnd(); n != 0 {
		t.Errorf("%d bytes were answered", n)
	}
	foreign.wantNothing()
}

// Descriptors that are sent along end the connection, and no process keeps them: the pipe has
// no writer any more. The control is the same message without them.
func TestDescriptorsEndTheConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.works(r.dial())
	for _, count := range []int{1, 3, 253} {
		read, write, err := os.Pipe()
		must(t, err)
		p := r.dial()
		fds := make([]int, count)
		for i := range fds {
			fds[i] = int(write.Fd())
		}
		line := []byte(request(1, agents.AgentGet.Name, "{}") + "\n")
		if n, _, err := p.WriteMsgUnix(line, unix.UnixRights(fds...), nil); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
		must(t, write.Close())
		if n := p.wantEnd(); n != 0 {
			t.Errorf("%d bytes were answered", n)
		}
		r.wantNothing()
		if n, err := read.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("a process holds the descriptors: %d, %v", n, err)
		}
		read.Close()
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	allow := ids{100000, 65536}
	for id, has := range map[uint32]bool{0: false, 99999: false, 100000: true, 165535: true, 165536: false, 1<<32 - 1: false} {
		if allow.has(id) != has {
			t.Errorf("%d: %t", id, !has)
		}
	}
	if (ids{}).has(0) {
		t.Error("no ids are some")
	}
}

// A call that its agent cancels, or whose connection ends, is cancelled by its number. A
// cancelled call still has its answer; one whose caller has gone frees its place.
func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.dial()
	p.ask(1)
	p.ask(2)
	first, second := r.call(), r.call()
	must(t, p.send(request(3, api.MethodCancel, `{"id":1}`), request(4, api.MethodCancel, `{"id":9}`)))
	if m := r.next(); m.Cancel != first.Number {
		t.Errorf("%+v, want a cancel of %d", m, first.Number)
	}
	p.wantResult("3", "{}")
	p.wantResult("4", "{}")
	r.wantNothing()
	r.answer(first.Number, `{"n":1}`)
	p.wantResult("1", `{"n":1}`)
	other := r.dial()
	must(t, other.send(request(5, api.MethodCancel, `{"id":2}`))) // an id of another connection
	other.wantResult("5", "{}")
	r.wantNothing()
	p.Close()
	if m := r.next(); m.Cancel != second.Number {
		t.Errorf("%+v, want a cancel of %d", m, second.Number)
	}
	r.answer(second.Number, `{}`) // the client is gone, and nothing happens
	r.works(other)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if len(r.server.calls) != 0 || len(r.server.connections) != 1 {
		t.Errorf("%d calls, %d connections", len(r.server.calls), len(r.server.connections))
	}
}

// The supervisor's end ends the server: without answers the socket must not seem to work.
func TestWithoutASupervisor(t *testing.T) {
	t.Parallel()
	super, gate := pair(t)
	s := New(gate, 0, 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Receive() }()
	must(t, super.Close())
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	must(t, gate.Close())
}
