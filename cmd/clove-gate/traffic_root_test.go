//go:build root

package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
	"golang.org/x/sys/unix"
)

// targetAddress belongs to the test's namespace: there connections of a plain listener look
// like those of a transparent one.
const targetAddress = "198.51.100.1"

// inside is a namespace with targetAddress, entered by Do.
func inside(t testing.TB) *nsthread.Thread {
	t.Helper()
	thread, err := nsthread.Start(unix.CLONE_NEWNET)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { thread.Close() })
	ip := testhost.Tool(t, "ip")
	for _, arguments := range []string{"link set lo up", "addr add " + targetAddress + "/32 dev lo"} {
		do(t, thread, exec.Command(ip, strings.Fields(arguments)...).Run)
	}
	return thread
}

func do(t testing.TB, thread *nsthread.Thread, f func() error) {
	t.Helper()
	if err := thread.Do(f); err != nil {
		t.Fatal(err)
	}
}

// listenFile is a listener as the broker sends it.
func listenFile(address string) (file *os.File, err error) {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return listener.(*net.TCPListener).File()
}

// outsides makes the connections that the broker answers with; their far ends echo.
type outsides struct {
	t        testing.TB
	listener net.Listener
	mu       sync.Mutex // guards far
	far      []net.Conn
}

func newOutsides(t testing.TB) *outsides {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &outsides{t: t, listener: listener}
	go o.accept()
	t.Cleanup(func() {
		listener.Close()
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, conn := range o.far {
			conn.Close()
		}
	})
	return o
}

func (o *outsides) accept() {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		o.far = append(o.far, conn)
		o.mu.Unlock()
		go func() {
			_, _ = io.Copy(conn, conn) // until the relay closes it
			conn.(*net.TCPConn).CloseWrite()
		}()
	}
}

func (o *outsides) file() *os.File {
	conn, err := net.Dial("tcp4", o.listener.Addr().String())
	if err != nil {
		o.t.Error(err)
		return nil
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		o.t.Error(err)
	}
	return file
}

// broker answers every Open first with verify and then with a connection.
func (o *outsides) broker(g *gateProcess) {
	for {
		r, err := g.conn.ReceiveRequest()
		if err != nil {
			return
		}
		if r.Open == nil {
			continue
		}
		answer := wire.Answer{ID: r.ID, Result: wire.ResultVerify}
		if r.Open.Shown != "" || r.Open.Target.Addr().IsLoopback() {
			answer.Result, answer.Number = wire.ResultAllowed, r.ID
			answer.Files = []*os.File{o.file()}
		}
		if err := g.conn.SendAnswer(answer); err != nil {
			return
		}
		for _, file := range answer.Files {
			file.Close()
		}
	}
}

// relaying starts a gate with one listener for all connections, and returns a function that
// connects through it.
func relaying(t testing.TB, limits wire.Limits) (*gateProcess, func() (net.Conn, error)) {
	t.Helper()
	thread := inside(t)
	var file *os.File
	do(t, thread, func() (err error) { file, err = listenFile(targetAddress + ":80"); return err })
	defer file.Close()
	g := start(t)
	g.setUp(limits, []wire.Listener{{Kind: wire.ListenTCP}}, file)
	go newOutsides(t).broker(g)
	return g, func() (conn net.Conn, err error) {
		err = thread.Do(func() error {
			conn, err = net.Dial("tcp4", targetAddress+":80")
			return err
		})
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(testhost.Patience(patience)))
		}
		return conn, err
	}
}

const request = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"

// echoed sends text and expects it back.
func echoed(conn net.Conn, text string) error {
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		return fmt.Errorf("%.40q, %v", got, err)
	}
	return nil
}

// TestAThousandConnectionsAreCheap: each was verified by its name and has carried bytes in
// both directions; all are open at the same time.
func TestAThousandConnectionsAreCheap(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	const mostKiB = 64 << 10
	connections := crowd(1000)
	g, connect := relaying(t, wire.Limits{})
	before := g.status()["VmRSS"]
	for range connections {
		conn, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := echoed(conn, request); err != nil {
			t.Fatal(err)
		}
	}
	status := g.status()
	descriptors, err := os.ReadDir(g.proc("fd"))
	t.Logf("resident: %s before, %s with %d connections, peak %s; %s threads, %d descriptors",
		before, status["VmRSS"], connections, status["VmHWM"], status["Threads"], len(descriptors))
	var kib int
	if _, err := fmt.Sscan(status["VmHWM"], &kib); err != nil || kib > mostKiB {
		t.Errorf("peak %q, %v", status["VmHWM"], err)
	}
	if err != nil || len(descriptors) > 2*connections+100 {
		t.Errorf("%d descriptors, %v", len(descriptors), err)
	}
}

// crowd is n, and less in the virtual machine, which is slow and where a tenth shows the same.
func crowd(n int) int { return testhost.Sample(n, n, n/10) }

// TestTenThousandIdleAttempts: they end in refusals, and the gate still serves.
func TestTenThousandIdleAttempts(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	const limit = 200
	attempts := crowd(10_000)
	g, connect := relaying(t, wire.Limits{Connections: limit})
	var open []net.Conn
	for range attempts {
		conn, err := connect()
		if err != nil {
			continue // the reset came before connect(2) returned
		}
		open = append(open, conn)
		if len(open) == 4*limit { // to spare the test's own descriptors; the oldest connections are the open ones
			open[len(open)-1].Close()
			open = open[:len(open)-1]
		}
	}
	status := g.status()
	t.Logf("peak %s, %s threads", status["VmHWM"], status["Threads"])
	descriptors, err := os.ReadDir(g.proc("fd"))
	if err != nil || len(descriptors) > limit+50 {
		t.Errorf("%d descriptors, %v", len(descriptors), err)
	}
	for _, conn := range open {
		conn.Close()
	}
	deadline := time.Now().Add(testhost.Patience(patience))
	for {
		conn, err := connect()
		if err == nil {
			err = echoed(conn, request)
			conn.Close()
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestTheKernelMovesTheBytes: /proc/PID/io counts read(2) and write(2), but not splice(2)
// between sockets. Control: the head is read and written, so it is counted.
func TestTheKernelMovesTheBytes(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	size := int64(crowd(64 << 20))
	g, connect := relaying(t, wire.Limits{})
	read := func(name string) (n int64) {
		text, err := os.ReadFile(g.proc("io"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(fields(string(text))[name], &n)
		return n
	}
	conn, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := read("wchar")
	if err := echoed(conn, request); err != nil {
		t.Fatal(err)
	}
	if got := read("wchar") - before; got < int64(len(request)) {
		t.Fatalf("control: %d bytes were written", got)
	}
	beforeRead, beforeWrite := read("rchar"), read("wchar")
	go func() { _, _ = conn.Write(make([]byte, size)) }() // the read below shows whether it worked
	began := time.Now()
	if n, err := io.CopyN(io.Discard, conn, size); err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	t.Logf("%d MiB there and back in %s", size>>20, time.Since(began))
	const noise = 1 << 16 // the poller's wake-ups
	if r, w := read("rchar")-beforeRead, read("wchar")-beforeWrite; r > noise || w > noise {
		t.Errorf("%d bytes were read and %d written", r, w)
	}
}

// TestHostPortsAndPublishedPorts: through the real process.
func TestHostPortsAndPublishedPorts(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	files := make([]*os.File, 2)
	addresses := make([]netip.AddrPort, 2)
	for i := range files {
		addresses[i], files[i] = listen(t)
	}
	g := start(t)
	g.setUp(wire.Limits{}, []wire.Listener{{Kind: wire.ListenHostPort, Port: 5432}, {Kind: wire.ListenPublish, Port: 8080}}, files...)
	outside := newOutsides(t)
	for i, want := range []string{"127.0.0.1:5432", "8080"} {
		conn, err := net.Dial("tcp4", addresses[i].String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r := g.receive()
		got := ""
		switch {
		case r.Open != nil:
			got = r.Open.Target.String()
		case r.Enter != nil && r.Enter.Client.String() == conn.LocalAddr().String():
			got = fmt.Sprint(r.Enter.Port)
		}
		if got != want {
			t.Errorf("asked %+v, want %s", r, want)
		}
		file := outside.file()
		if err := g.conn.SendAnswer(wire.Answer{ID: r.ID, Result: wire.ResultAllowed, Number: 1, Files: []*os.File{file}}); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if err := echoed(conn, "hello"); err != nil {
			t.Error(err)
		}
	}
}
