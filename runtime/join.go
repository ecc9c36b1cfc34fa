package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/host"
	"clove.run/clove/kernel/channel"
)

// attach makes ready what the run shares with others.
func (l *launch) attach() error {
	if l.streams.Kernel == nil && !l.spec.Kernel.Shares() {
		return nil
	}
	if l.streams.Kernel == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "kernel", Message: "grants and budgets are not available here",
			Hint: "start the run with `clove run`"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	commands := func() (commandPlace, error) {
		return l.runtime.commands(l.probes.cgroups, l.streams.Owner.UID, l.spec.ID)
	}
	removed := func() bool { return l.runtime.removed(l.spec) }
	l.share = &share{kernel: l.streams.Kernel, run: l.spec.ID, ctx: ctx, standings: make(chan api.Standing, 1), refusals: l.refusals, shadow: l.shadow, callouts: newCallouts(l.spec, l.streams, commands, removed), sent: map[string]int64{}, asked: l.streams.Asked}
	if l.spec.Kernel.OnAsk != "" {
		if _, err := readAskKey(l.streams.Owner, l.spec); err != nil {
			cancel()
			return err
		}
	}
	l.undo.Add("kernel", func() error { cancel(); return nil })
	if err := l.share.kernel.Attach(ctx, l.run, l.share.changed); err != nil {
		return err
	}
	if err := l.share.joinMail(l.spec); err != nil {
		return err
	}
	// Before the gate starts: the agent's first connection is decided by all rules.
	first := l.share.first()
	l.share.net, l.share.start = first.Net, first.Start
	l.share.granted = l.share.open(time.Now())
	if !l.spec.Gated() {
		return nil
	}
	rules, err := rulesOf(l.share.withGranted(l.spec), l.streams.Owner)
	l.rules = rules
	l.share.force.set(l.share.granted, rules)
	return err
}

// openSocket makes the agent's own socket and the channel on which its calls come.
func (l *launch) openSocket() (*host.AgentSocket, error) {
	if !l.spec.Kernel.HasSocket() {
		return nil, nil
	}
	listener, err := listenInServices(l.runtime.paths.services(l.spec.ID), agentSocketName)
	if err != nil {
		return nil, err
	}
	calls, gate, err := channel.Pair()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l.share.calls = calls
	l.undo.Add("agent socket", calls.Close)
	served := calls
	if what, _, _ := l.spec.Kernel.Denial(); what != "deny" || l.shadow != nil {
		if served, err = l.share.watch(calls); err != nil {
			return nil, errors.Join(err, listener.Close(), gate.Close())
		}
		l.undo.Add("watched calls", served.Close)
	}
	go l.share.serve(served)
	return &host.AgentSocket{Listener: listener, Calls: gate, First: l.run.Lease.HostID(), Count: agent.IDsPerAgent}, nil
}

// listenInServices makes a socket in a directory of its own, which is all that the agent
// sees of the run directory. Any process that reaches the socket may connect: its ids are
// checked when it does, or with each byte that it sends.
func listenInServices(dir, name string) (*os.File, error) {
	if err := makeServices(dir); err != nil {
		return nil, err
	}
	at, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := listenAt(fd, fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), name)); err != nil {
		file.Close()
		return nil, err
	}
	if err := os.Chmod(filepath.Join(dir, name), 0o666); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Sockets in that directory.
const (
	agentSocketName = "agent.sock"
	sshSocketName   = "ssh.sock" // of the ssh agent
)

// listenAt binds by a short path: a run directory may be too long for sockaddr_un. The
// option comes before listen(2), so that no connection is without it.
func listenAt(fd int, path string) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	return os.NewSyscallError("listen", unix.Listen(fd, 64))
}

// openGate starts the gate of a run that needs one.
func (l *launch) openGate() (err error) {
	if !l.spec.Gated() {
		return nil
	}
	agentSocket, err := l.openSocket()
	if err != nil {
		return err
	}
	shadow, err := l.shadow.rules(l.share.grants())
	if err != nil {
		return err
	}
	asked := l.spec.Egress
	decided := func(d broker.Decision) {
		if d.Outcome == broker.OutcomeDenied {
			l.refusals.add()
		}
		l.uses.decided(d)
	}
	config := host.Config{
		Program: besideInit(l.runtime.init, host.Program), ID: l.run.Lease.GateID(), Namespace: l.network.namespace, Owner: l.streams.Owner,
		Publish: asked.Publish, DNS: asked.DNS, Rules: l.rules, Shadow: shadow, Limits: asked.Limits, Agent: agentSocket, Ask: l.asks(), Hold: cmp.Or(l.spec.Kernel.AskHold, agent.AskHold),
	}
	if l.secrets != nil && l.secrets.Swap != nil {
		config.Swap = l.secrets
	}
	l.gate, err = openGate(config, l.spec.ID, l.streams, decided, l.denials)
	if err != nil {
		return err
	}
	l.undo.Add("gate", l.gate.Stop)
	return nil
}

// openModels makes the listener of models before the agent could take its port.
func (l *launch) openModels() (err error) {
	if !l.spec.Kernel.HasModels() {
		return nil
	}
	if l.streams.Models == nil || l.network.namespace == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "models", Message: "nothing here serves models",
			Hint: "start the run with `clove run`, and without --network host"}
	}
	listener, err := l.network.namespace.ListenInside(agent.ModelPort)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.undo.Add("models", func() error { cancel(); return nil })
	l.models, err = l.streams.Models.Serve(ctx, l.run, listener)
	return err
}
