package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/undo"
	"clove.run/clove/netns"
)

// gate is the egress gate of one run: clove-gate, a process without rights
// that reads what the agent writes, and the broker here, which decides.
type gate struct {
	broker *broker.Broker
	child  *gateProcess
	served chan error         // closed when the broker ended; its reason comes first
	cancel context.CancelFunc // ends the broker
	undo   undo.Stack
}

// gateProgram is installed beside clove-init.
const gateProgram = "clove-gate"

// gateStart bounds the time until clove-gate has dropped its rights and serves.
const gateStart = 20 * time.Second

// gateInheritance is what clove-gate is given.
type gateInheritance struct {
	executable string
	id         uint32 // its user and group on the host
	namespace  *netns.Namespace
	publish    []agent.PublishedPort
	listen     func(agent.PublishedPort) (*os.File, error) // takes a port of the host's
}

// startGate makes the listeners, starts clove-gate and serves it. On failure
// nothing is left.
func startGate(in gateInheritance, config broker.Config) (*gate, error) {
	g := &gate{served: make(chan error, 1)}
	if err := g.start(in, config); err != nil {
		return nil, errors.Join(err, g.undo.Run())
	}
	return g, nil
}

func (g *gate) start(in gateInheritance, config broker.Config) error {
	conn, inherited, err := wire.Pair()
	if err != nil {
		return err
	}
	g.undo.Add("gate channel", func() error { conn.Close(); return nil }) // the broker may have closed it
	g.child, err = startGateProcess(in.executable, in.id, inherited)
	inherited.Close()
	if err != nil {
		return err
	}
	g.undo.Add("gate process", g.child.kill)
	config.Namespace = in.namespace
	if config.Listeners, err = listeners(in); err != nil {
		return err
	}
	g.broker = broker.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.undo.Add("broker", func() error { g.conclude(); return nil })
	go func() {
		defer close(g.served)
		g.served <- g.broker.Serve(ctx, conn)
	}()
	return g.await()
}

// await waits until clove-gate says that it has no rights left.
func (g *gate) await() error {
	timeout := time.NewTimer(gateStart)
	defer timeout.Stop()
	select {
	case <-g.broker.Ready():
		return nil
	case err := <-g.served:
		return fmt.Errorf("clove-gate does not serve: %w", g.ending(err))
	case <-timeout.C:
		return fmt.Errorf("clove-gate does not serve within %s", gateStart)
	}
}

// ending says why the gate ended, once the broker has: reason is the broker's.
func (g *gate) ending(reason error) error {
	g.child.kill()
	return errors.Join(reason, g.child.complaint())
}

// listeners makes every socket that the gate will hold, the host's included.
func listeners(in gateInheritance) ([]broker.Listener, error) {
	sockets, err := listenOnceFree(in.namespace.Listen, gateGone)
	if err != nil {
		return nil, err
	}
	var all []broker.Listener
	for _, s := range sockets {
		all = append(all, broker.Listener{Kind: wire.ListenerKind(s.Kind), Port: s.Port, File: s.File})
	}
	for _, p := range in.publish {
		file, err := in.listen(p)
		if err != nil {
			for _, l := range all {
				l.File.Close()
			}
			return nil, err
		}
		all = append(all, broker.Listener{Kind: wire.ListenPublish, Port: p.Port, File: file})
	}
	return all, nil
}

// gateGone bounds the wait for the sockets of a gate before this one: it dies by
// its guard's end, which is known, and nobody hears when it has.
const gateGone = 5 * time.Second

// listenOnceFree makes sockets by try, again where another's are still at their addresses.
func listenOnceFree(try func() ([]netns.Socket, error), patience time.Duration) ([]netns.Socket, error) {
	const pause = 20 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		sockets, err := try()
		if !errors.Is(err, unix.EADDRINUSE) || !time.Now().Before(deadline) {
			return sockets, err
		}
	}
}

func listenOnHost(p agent.PublishedPort) (*os.File, error) {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(p.Host))
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindConflict, Step: "--publish", Message: "cannot listen on " + p.Host.String(),
			Hint: "choose another port of the host's, or 0 for any free one", Err: err}
	}
	defer listener.Close()
	return listener.File()
}

// conclude ends the broker; its account is complete then. A second call finds
// that it has.
func (g *gate) conclude() {
	g.cancel()
	<-g.served
}

// stop ends the process and the broker.
func (g *gate) stop() error { return g.undo.Run() }

// gateProcess is clove-gate itself.
type gateProcess struct {
	command *exec.Cmd
	thread  *nsthread.Thread // its parent: the parent-death signal is tied to a thread
	stderr  *head
	waited  bool
}

// head keeps the first of what is written to it. A gate that was taken over
// can write for ever, and what it writes is kept in root's memory.
type head struct{ kept bytes.Buffer }

const headBytes = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), headBytes-h.kept.Len())])
	return len(p), nil // else the gate's write would fail
}

// gateNamespaces is every kind but the user's: clove-gate gives up root by
// itself, before it reads a byte.
const gateNamespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

func startGateProcess(executable string, id uint32, channel *os.File) (*gateProcess, error) {
	thread, err := nsthread.Start(0)
	if err != nil {
		return nil, err
	}
	p := &gateProcess{thread: thread, stderr: &head{}}
	p.command = exec.Command(executable, strconv.FormatUint(uint64(id), 10))
	p.command.Env = []string{}
	p.command.Dir = "/"
	p.command.Stderr = p.stderr
	p.command.ExtraFiles = []*os.File{channel}
	p.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: gateNamespaces, Pdeathsig: unix.SIGKILL}
	if err := thread.Do(p.command.Start); err != nil {
		thread.Close()
		return nil, fmt.Errorf("cannot start clove-gate: %w", err)
	}
	return p, nil
}

// kill ends the process, if it has not ended, and reaps it.
func (p *gateProcess) kill() error {
	if p.waited {
		return nil
	}
	p.waited = true
	p.command.Process.Kill() // an error: it has ended already
	p.command.Wait()         // how it ended is no news: it was killed
	p.thread.Close()
	return nil
}

// complaint is how it ended, and the first of what it wrote before. It is
// called after kill, which is how one ends that did not end by itself.
func (p *gateProcess) complaint() error {
	how := p.command.ProcessState.String()
	if line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.kept.String()), "\n"); line != "" {
		how += ": " + line
	}
	return errors.New(how)
}

// gateDrain is how long the last bytes of an agent that ended by itself may
// take to leave.
const gateDrain = 2 * time.Second

func (g *gate) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), gateDrain)
	defer cancel()
	g.broker.Drain(ctx)
}

// closeGate ends the agent's network, so that the record has all of it. What an
// agent that ended by itself still has on its way may leave.
func (l *launch) closeGate(seen outcome) {
	if l.gate == nil {
		return
	}
	if seen.cause == causeNone {
		l.gate.drain()
	}
	_ = l.lastNotices(func() error { l.gate.conclude(); return nil })
}
