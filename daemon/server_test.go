package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// A cloved that ends answers what it can, sends an error to callers that wait for something
// that may never happen, and does not wait for idle callers.
func TestEndOfService(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("live", agent.Owner{}, agent.StateRunning)
	begun, release := r.hold("slow")
	path := filepath.Join(r.dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	alive, stop := context.WithCancel(context.Background())
	served, ready := make(chan error, 1), make(chan struct{})
	go func() { served <- r.d.Serve(alive, listener, -1, func() { close(ready) }) }()
	<-ready
	c, err := client.Dial(within(t), path)
	must(t, err)
	defer c.Close()
	idle, waiting := r.dial(), r.dial()
	say(t, idle, ping)
	_, err = idle.Receive()
	must(t, err)

	say(t, waiting, `{"jsonrpc":"2.0","id":"w","method":"run.wait","params":{"run":"live"}}`, ping)
	if m := hear(t, waiting); string(m.ID) != `"ping"` { // so that the request before it has been read
		t.Fatalf("%+v", m)
	}
	following, starting := make(chan error, 1), make(chan error, 1)
	events := make(chan struct{}, 16)
	go func() {
		_, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: new(uint64), Follow: true}, func(api.EventNote) error { events <- struct{}{}; return nil })
		following <- err
	}()
	<-events
	go func() {
		_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("slow")})
		starting <- err
	}()
	<-begun
	stop()
	wantCode(t, <-following, api.CodeDraining)
	if m := hear(t, waiting); string(m.ID) != `"w"` || codeOf(m) != api.CodeDraining {
		t.Errorf("%+v", m)
	}
	if _, err := idle.Receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle caller is kept: %v", err)
	}
	release()
	must(t, <-starting)
	must(t, <-served)
}
