package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// usage counts what must not grow.
type usage struct{ goroutines, descriptors int }

func used(t *testing.T) usage {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return usage{runtime.NumGoroutine(), len(open)}
}

// ownWork is how much the daemon itself may have begun meanwhile: it refreshes its cache and
// looks after its runs. The test has many more callers.
const ownWork = 8

// flat waits until no more is in use than before.
func flat(t *testing.T, before usage) {
	t.Helper()
	deadline := time.Now().Add(patience)
	now := used(t)
	for ; now.goroutines > before.goroutines+ownWork || now.descriptors > before.descriptors+ownWork; now = used(t) {
		if time.Now().After(deadline) {
			t.Fatalf("before %+v, and now %+v", before, now)
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond) // between two checks of a condition
	}
}

// A caller that disconnects in the middle of anything, many times, leaves nothing behind.
func TestLeavingLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.add("long", rootCaller.owner, "running")
	r.serve()
	before := used(t)
	for what, lines := range map[string]string{
		"half a line":                         `{"jsonrpc":"2.0","id":`,
		"nothing":                             "",
		"a wait":                              `{"jsonrpc":"2.0","id":1,"method":"run.wait","params":{"run":"long"}}` + "\n",
		"a stream":                            `{"jsonrpc":"2.0","id":1,"method":"event.follow","params":{"follow":true}}` + "\n",
		"a log":                               `{"jsonrpc":"2.0","id":1,"method":"run.logs","params":{"run":"long","follow":true}}` + "\n",
		"a session":                           `{"jsonrpc":"2.0","id":1,"method":"run.attach","params":{"run":"long"}}` + "\n",
		"a session's messages":                `{"jsonrpc":"2.0","method":"session.input","params":{"data":"eA=="}}` + "\n",
		"a batch":                             "[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"run.wait","params":{"run":"long"}}]` + "\n",
		"a stream as notification in a batch": "[" + ping + `,{"jsonrpc":"2.0","method":"event.follow","params":{"follow":true}}]` + "\n",
		"rubbish":                             "\x00\xff\n\n{}[]\n",
	} {
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				conn, err := net.Dial("unix", filepath.Join(r.dir, "s"))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Write([]byte(lines))
				conn.Close()
			})
		}
		all.Wait()
		t.Log(what)
		flat(t, before)
	}
}

// A caller that has closed its sending side still gets its answers.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	say(t, c, ping)
	must(t, c.CloseWrite())
	if m := hear(t, c); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}

// If an id is in use on a connection, a second request with it is refused; the first one is
// answered.
func TestIDsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("long", rootCaller.owner, "running")
	r.serve()
	c := r.dial()
	wait := `{"jsonrpc":"2.0","id":7,"method":"run.wait","params":{"run":"long"}}`
	say(t, c, wait, wait)
	if m := hear(t, c); codeOf(m) != api.CodeRequest {
		t.Errorf("the second: %+v", m)
	}
	r.end("long", 3)
	if m := hear(t, c); m.Error != nil || string(m.ID) != "7" {
		t.Errorf("the first: %+v", m)
	}
	say(t, c, "["+ping+","+ping+"]")
	line, err := c.Line(rpc.MaxLine)
	must(t, err)
	var answers []rpc.Message
	must(t, json.Unmarshal(line, &answers))
	for _, m := range answers {
		ofTheSet(t, m)
	}
	if len(answers) != 2 {
		t.Errorf("%s", line)
	}
}

// Notifications get no answer, also in a batch; the request after them does.
func TestBatchOfNotifications(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	note := `{"jsonrpc":"2.0","method":"daemon.info"}`
	say(t, c, "["+note+","+note+"]", "["+note+`,{"jsonrpc":"2.0","method":"event.follow","params":{"follow":true}}]`, ping)
	if m := hear(t, c); string(m.ID) != `"ping"` {
		t.Errorf("%+v", m)
	}
}

// A connection cannot see or cancel the requests of another one.
func TestCancelOfAnothersRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("long", rootCaller.owner, "running")
	r.serve()
	mine, other := r.dial(), r.dial()
	say(t, mine, `{"jsonrpc":"2.0","id":"w","method":"run.wait","params":{"run":"long"}}`, ping)
	if m := hear(t, mine); string(m.ID) != `"ping"` {
		t.Fatalf("%+v", m)
	}
	say(t, other, `{"jsonrpc":"2.0","id":1,"method":"request.cancel","params":{"id":"w"}}`)
	if m := hear(t, other); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
	r.end("long", 0)
	if m := hear(t, mine); m.Error != nil || string(m.ID) != `"w"` {
		t.Errorf("%+v", m)
	}
	// It has been answered, and a cancellation has no effect.
	say(t, mine, `{"jsonrpc":"2.0","id":1,"method":"request.cancel","params":{"id":"w"}}`)
	if m := hear(t, mine); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}

// A caller that reads nothing delays only itself: others are answered, and after its end
// nothing of it is left.
func TestSlowReader(t *testing.T) {
	r := newRig(t, nil)
	for i := range 20 {
		r.add(fmt.Sprintf("run-%d", i), rootCaller.owner, "running")
	}
	r.serve()
	other := r.dial()
	say(t, other, ping)
	hear(t, other)
	must(t, r.d.reconciler.looks(within(t))) // from then on it waits for the supervisor of each run
	before := used(t)
	var slow []*rpc.Conn
	var sent sync.WaitGroup
	for range 16 {
		c := r.dial()
		slow = append(slow, c)
		sent.Go(func() {
			list := []byte(`{"jsonrpc":"2.0","id":1,"method":"run.list"}` + "\n")
			_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // until its pipes are full
			for {
				if _, err := c.Write(list); err != nil {
					return
				}
			}
		})
	}
	sent.Wait()
	say(t, other, ping)
	if m := hear(t, other); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
	for _, c := range slow {
		c.Close()
	}
	flat(t, before)
}

// Connections above the limit get an error, and connections that end free their places.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := newServer(r.d, 50)
	member := func(uid uint32) caller { c := otherCaller; c.owner.UID, c.groups = uid, []uint32{50}; return c }
	var open []*conversation
	for i := range maxConnections {
		c := new(conversation)
		if fault := s.enter(c, member(uint32(1000+i/maxConnectionsEach))); fault != nil {
			t.Fatalf("connection %d: %v", i, fault)
		}
		open = append(open, c)
	}
	if fault := s.enter(new(conversation), member(999)); fault == nil || fault.Code != api.CodeBusy {
		t.Errorf("one too many: %v", fault)
	}
	if fault := s.enter(new(conversation), rootCaller); fault != nil {
		t.Errorf("root is kept out: %v", fault)
	}
	for _, c := range open {
		s.leave(c)
	}
	if len(s.each) != 1 || len(s.open) != 1 {
		t.Errorf("left: %d users, %d connections", len(s.each), len(s.open))
	}
}

// Every error of every method is of the API's set, whatever the parameters are.
func TestEveryMethodsErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("live", rootCaller.owner, "running")
	r.add("over", rootCaller.owner, "ended")
	r.serve()
	for _, m := range methods.All() {
		if m.Name == methods.RunWait.Name || m.Name == methods.RunStop.Name || m.Name == methods.RunRestart.Name {
			continue // they wait for an agent that does not exist
		}
		for _, params := range []string{`{}`, `[]`, `{"run":"live"}`, `{"run":"over"}`, `{"run":"none"}`, `{"run":""}`, `{"run":"live","force":3}`, `{"odd":true}`,
			`{"run":"` + strings.Repeat("x", 4096) + `"}`, `{"run":"over","name":"../x"}`, `{"spec":{}}`, `{"run":"live","signal":-1}`} {
			c := r.dial()
			say(t, c, `{"jsonrpc":"2.0","id":1,"method":"`+m.Name+`","params":`+params+`}`)
			for hear(t, c).Method != "" { // streamed notifications come first
			}
			c.Close()
		}
	}
}

// A cloved without free descriptors accepts no connection for that time, and continues
// afterwards. In an earlier version it ended.
func TestNoDescriptors(t *testing.T) {
	r := newRig(t, nil)
	r.serve()
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	less := limit
	less.Cur = uint64(used(t).descriptors + 9)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &less))
	restore := sync.OnceFunc(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) })
	defer restore()
	var open []net.Conn
	for {
		conn, err := net.Dial("unix", filepath.Join(r.dir, "s"))
		if err != nil {
			break // the control: there are none
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		conn.Close()
	}
	restore()
	c := r.dial()
	say(t, c, ping)
	if m := hear(t, c); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}
