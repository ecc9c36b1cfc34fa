package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// fakeCloved reads one request, and answers only as the test says.
func fakeCloved(t *testing.T, answer func(*rpc.Conn, rpc.Message) error) (socket string, heard <-chan api.ContainerParams) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	params := make(chan api.ContainerParams, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		c := rpc.New(conn.(*net.UnixConn))
		defer c.Close()
		m, err := c.Receive()
		var p api.ContainerParams
		if err != nil || m.Method != methods.Container.Name || json.Unmarshal(m.Params, &p) != nil {
			return
		}
		params <- p
		_ = answer(c, m)
		_, _ = c.Receive() // until the caller disconnects
	}()
	return socket, params
}

func agrees(c *rpc.Conn, m rpc.Message) error { return c.Respond(m.ID, api.Nothing{}, nil) }

// TestClovedGetsTheRecord: the record that is in the file.
func TestClovedGetsTheRecord(t *testing.T) {
	socket, heard := fakeCloved(t, agrees)
	path := filepath.Join(t.TempDir(), "one.json")
	m, _ := holding(t, order{Command: []string{"sh", "-c", "exit 7"}, Record: path, Socket: socket})
	m.patience = patience
	done := serveTest(t, m)
	if err := ask(m.directory, verbStart, patience); err != nil {
		t.Fatal(err)
	}
	if err := m.process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectDone(t, done)
	var got api.ContainerParams
	select {
	case got = <-heard:
	default: // the monitor has finished
		t.Fatal("cloved was not asked")
	}
	if got.Container != (agent.Container{ID: "one", Directory: m.directory}) || got.Record.ID != "one" || !slices.Equal(got.Record.Command, m.order.Command) {
		t.Errorf("%+v", got)
	}
	if free, err := isFree(path, of("two")); free || err != nil {
		t.Errorf("the file is not there: %v", err)
	}
}

// TestTheFileIsNotCloveds: whatever happens to a report, the record is written and the monitor
// finishes.
func TestTheFileIsNotCloveds(t *testing.T) {
	refuses := func(c *rpc.Conn, m rpc.Message) error {
		return c.Respond(m.ID, nil, api.Failure(api.CodeStorage, "", "the disk is full"))
	}
	for name, row := range map[string]struct {
		cloved func(*rpc.Conn, rpc.Message) error
		want   string
	}{
		"down":    {nil, ""},
		"refuses": {refuses, "the disk is full"},
		"dies":    {func(c *rpc.Conn, _ rpc.Message) error { return c.Close() }, "cloved ended"},
	} {
		socket := filepath.Join(t.TempDir(), "none")
		if row.cloved != nil {
			socket, _ = fakeCloved(t, row.cloved)
		}
		path := filepath.Join(t.TempDir(), "one.json")
		m, _ := holding(t, order{Record: path, Socket: socket})
		m.order.Phase = phaseStarted
		m.account(end{status: exited(3), at: time.Now()})
		if o, _, err := readOrder(m.directory); err != nil || o.Phase != phaseEnded {
			t.Errorf("%s: %v, %+v", name, err, o)
		}
		if free, err := isFree(path, of("two")); free || err != nil {
			t.Errorf("%s: the file is not there: %v", name, err)
		}
		if row.cloved != nil {
			socket, _ = fakeCloved(t, row.cloved)
		}
		m.order.Socket = socket
		err := m.report(t.Context(), agent.Record{ID: "one"})
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&monitor{}).report(t.Context(), agent.Record{}); err != nil {
		t.Errorf("an order without a socket: %v", err)
	}
}

// TestASilentClovedHoldsNobodyUp: for longer than a removal waits.
func TestASilentClovedHoldsNobodyUp(t *testing.T) {
	if reportPatience >= finishPatience {
		t.Fatal("a removal fails before the report is given up")
	}
	ctx, cancel := context.WithCancel(t.Context())
	socket, _ := fakeCloved(t, func(*rpc.Conn, rpc.Message) error { cancel(); return nil })
	m := &monitor{order: order{ID: "one", Socket: socket}}
	if err := m.report(ctx, agent.Record{ID: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestACommandIsAsLongAsItsAuthorLikes: it is shortened in the report to cloved.
func TestACommandIsAsLongAsItsAuthorLikes(t *testing.T) {
	for name, row := range map[string]struct{ command, want []string }{
		"short": {[]string{"sh", "-c", "x"}, []string{"sh", "-c", "x"}},
		"full":  {[]string{"abcdefg", "12"}, []string{"abcdefg", "…"}},
		"long":  {[]string{strings.Repeat("x", 1<<20)}, []string{"…"}},
		"none":  {nil, nil},
	} {
		if got := shortened(row.command, 10); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Even with the longest JSON escapes it leaves room for the rest in cloved's line of 64
	// KiB.
	text, err := json.Marshal(shortened(slices.Repeat([]string{"\x01"}, 1<<20), reportedCommand))
	if err != nil || len(text) > 56<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
