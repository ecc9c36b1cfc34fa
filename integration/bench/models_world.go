package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

const (
	providerAddress = "127.0.0.1:8700"
	nginxAddress    = "127.0.0.1:8701"
	gatewayAddress  = "127.0.0.1:8787"
)

// modelWorld is a network namespace with a loopback and nothing else. In it are a provider,
// what stands in front of it, and a client of each.
type modelWorld struct {
	*bench
	dir      string
	here     *nsthread.Thread
	provider *http.Server
	cloved   *cloved
	programs []*program
	peers    []*modelPeer
	absent   map[string]string
}

// newModelWorld starts everything. After an error the caller still closes it.
func newModelWorld(b *bench) (w *modelWorld, err error) {
	w = &modelWorld{bench: b, dir: filepath.Join(b.scratch, "models"), absent: map[string]string{}}
	if err := os.Mkdir(w.dir, 0o711); err != nil {
		return w, err
	}
	if w.here, err = nsthread.Start(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return w, err
	}
	if err := batch(w.here, "link set lo up\n"); err != nil {
		return w, err
	}
	if err := w.provide(); err != nil {
		return w, err
	}
	for _, k := range modelKinds {
		if err := w.open(k); err != nil {
			w.absent[k.name] = err.Error()
		}
	}
	return w, nil
}

// provide opens the provider's socket in the namespace. The goroutines that serve it may run
// on any thread: a socket keeps its namespace.
func (w *modelWorld) provide() (err error) {
	var listener net.Listener
	if err := w.here.Do(func() (err error) { listener, err = net.Listen("tcp4", providerAddress); return err }); err != nil {
		return err
	}
	w.provider = &http.Server{Handler: http.HandlerFunc(answerModel)}
	go w.provider.Serve(listener) // ends with Close
	return nil
}

// open starts a peer, and has it answer once: one that cannot is left out.
func (w *modelWorld) open(k modelKind) error {
	p, err := k.open(w)
	if err != nil {
		return err
	}
	p.name = k.name
	for _, stream := range []bool{true, false} {
		if _, err := p.run(modelOrder{Model: modelSwift, Stream: stream, Callers: 1, Turns: 1}); err != nil {
			return err
		}
	}
	w.peers = append(w.peers, p)
	return nil
}

// close ends the clients before what they ask.
func (w *modelWorld) close() error {
	var errs []error
	for _, p := range slices.Backward(w.programs) {
		errs = append(errs, p.end())
	}
	if w.cloved != nil {
		errs = append(errs, w.cloved.end())
	}
	if w.provider != nil {
		errs = append(errs, w.provider.Close())
	}
	if w.here != nil {
		w.here.Close()
	}
	return errors.Join(errs...)
}

func (w *modelWorld) start(cmd *exec.Cmd) (*program, error) {
	cmd.Dir = w.dir
	p, err := w.program(w.here, cmd)
	if err == nil {
		w.programs = append(w.programs, p)
	}
	return p, err
}

// asker starts a client that asks at an address.
func (w *modelWorld) asker(address string, header ...string) (*remote, error) {
	return newRemote(exec.Command(w.self, append([]string{roleAsker, "http://" + address + "/v1"}, header...)...), w.start)
}

// modelPeer is one way to the provider, with a client on it.
type modelPeer struct {
	name      string
	client    *remote
	processes func() []int // that stand between the two; nil: none do
}

func (p *modelPeer) run(o modelOrder) (said modelReport, err error) {
	if err = p.client.ask(o, &said); err == nil {
		err = p.client.failure(said.Error)
	}
	if err != nil {
		return said, fmt.Errorf("%s: %w", p.name, err)
	}
	return said, nil
}
