//go:build root

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/testhost"
)

const (
	testUID  = 0x70000000 + 65535 // as for a lease
	patience = 20 * time.Second

	// The namespaces that the broker's side gives a gate.
	freshNamespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
)

// gateProcess is the built clove-gate, started as egress/host starts it.
type gateProcess struct {
	t       testing.TB
	conn    *wire.Conn
	command *exec.Cmd
	stderr  bytes.Buffer
	ended   chan struct{}
}

func launch(t testing.TB, flags uintptr, arguments ...string) *gateProcess {
	t.Helper()
	conn, file, err := wire.Pair()
	if err != nil {
		t.Fatal(err)
	}
	g := &gateProcess{t: t, conn: conn, ended: make(chan struct{})}
	g.command = exec.Command(testhost.Binary(t, "clove-gate"), arguments...)
	leaked, err := os.Open("/etc/passwd") // as a careless launch could leave it open
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	g.command.ExtraFiles = []*os.File{file, leaked}
	g.command.Stderr = &g.stderr
	g.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if err := g.command.Start(); err != nil {
		t.Fatal(err)
	}
	file.Close()
	go func() {
		defer close(g.ended)
		_ = g.command.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() { g.conn.Close(); g.command.Process.Kill(); <-g.ended })
	return g
}

// start is launch with valid arguments.
func start(t testing.TB) *gateProcess { return launch(t, freshNamespaces, fmt.Sprint(testUID)) }

// setUp sends the listeners and waits for Ready.
func (g *gateProcess) setUp(limits wire.Limits, listeners []wire.Listener, files ...*os.File) {
	g.t.Helper()
	answer := wire.Answer{Setup: &wire.Setup{Listeners: listeners, Limits: limits}, Files: files}
	if err := g.conn.SendAnswer(answer); err != nil {
		g.t.Fatal(err)
	}
	if r := g.receive(); r.Ready == nil {
		g.t.Fatalf("instead of ready: %+v", r)
	}
}

func (g *gateProcess) receive() wire.Request {
	g.t.Helper()
	r, err := g.conn.ReceiveRequest()
	if err != nil {
		g.wait()
		g.t.Fatalf("the gate is gone: %v, %s %s", err, g.command.ProcessState, &g.stderr)
	}
	return r
}

// wait waits until the process has ended.
func (g *gateProcess) wait() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(patience))
	defer cancel()
	select {
	case <-g.ended:
	case <-ctx.Done():
		g.t.Fatal("the gate does not end")
	}
}

// proc reads a file of the gate's /proc/PID.
func (g *gateProcess) proc(name string) string {
	return fmt.Sprintf("/proc/%d/%s", g.command.Process.Pid, name)
}

// status reads /proc/PID/status.
func (g *gateProcess) status() map[string]string {
	g.t.Helper()
	text, err := os.ReadFile(g.proc("status"))
	if err != nil {
		g.t.Fatal(err)
	}
	return fields(string(text))
}

// listen makes a listener on loopback and the descriptor to send to the gate.
func listen(t testing.TB) (netip.AddrPort, *os.File) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return listener.Addr().(*net.TCPAddr).AddrPort(), file
}
