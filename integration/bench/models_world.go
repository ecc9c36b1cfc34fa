package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

const (
	providerAddress = "127.0.0.1:8700"
	nginxAddress    = "127.0.0.1:8701"
	gatewayAddress  = "127.0.0.1:8787"
)

// modelWorld is a network namespace with a loopback and nothing else. In it are a provider,
// what stands in front of it, and a client of each.
type modelWorld struct{ site }

// open starts everything.
func (w *modelWorld) open(t *table) (peers []*modelPeer, err error) {
	if err := os.Mkdir(w.dir, 0o711); err != nil {
		return nil, err
	}
	if w.here, err = w.isolate(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return nil, err
	}
	if err := batch(w.here, "link set lo up\n"); err != nil {
		return nil, err
	}
	if err := w.provide(); err != nil {
		return nil, err
	}
	return openAll(w, t, modelKinds), nil
}

// provide opens the provider's socket in the namespace. The goroutines that serve it may run
// on any thread: a socket keeps its namespace.
func (w *modelWorld) provide() (err error) {
	var listener net.Listener
	if err := w.here.Do(func() (err error) { listener, err = net.Listen("tcp4", providerAddress); return err }); err != nil {
		return err
	}
	provider := &http.Server{Handler: http.HandlerFunc(answerModel)}
	go provider.Serve(listener) // ends with Close
	w.started.Add("the provider", provider.Close)
	return nil
}

// asker starts a client that asks at an address.
func (w *modelWorld) asker(address string, header ...string) (*remote, error) {
	return w.remote(append([]string{w.self, roleAsker, "http://" + address + "/v1"}, header...)...)
}

// modelPeer is one way to the provider, with a client on it.
type modelPeer struct {
	name      string
	client    *remote
	processes func() []int // that stand between the two; nil: none do
}

func (p *modelPeer) run(o modelOrder) (report, error) {
	said, err := p.client.run(o)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return said, err
}
