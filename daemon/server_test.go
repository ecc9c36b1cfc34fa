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
	"clove.run/clove/client"
)

// A cloved that ends answers what it can, tells those who wait for what may
// never come, and does not wait for callers that want nothing.
func TestEndOfService(t *testing.T) {
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
	idle := r.dial()
	say(t, idle, ping)
	_, err = idle.Receive()
	must(t, err)

	following, waiting, starting := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	told := make(chan struct{}, 16)
	go func() {
		_, err := c.Events(within(t), api.EventParams{After: new(uint64), Follow: true}, func(api.EventNote) error { told <- struct{}{}; return nil })
		following <- err
	}()
	<-told
	go func() { _, err := c.Wait(within(t), "live"); waiting <- err }()
	go func() { _, err := c.Start(within(t), api.StartParams{Spec: spec("slow")}); starting <- err }()
	<-begun
	stop()
	wantCode(t, <-following, api.CodeDraining)
	if err := <-waiting; agent.KindOf(err) != agent.KindBusy || err == nil { // it may not have been heard yet
		t.Errorf("%v", err)
	}
	if _, err := idle.Receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle caller is kept: %v", err)
	}
	release()
	must(t, <-starting)
	must(t, <-served)
}
