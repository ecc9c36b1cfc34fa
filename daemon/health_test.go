package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// cloved is healthy while it answers and its reconciler works, also if the store fails: a
// restart of cloved would not help.
func TestHealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if err := r.d.Healthy(within(t)); err == nil {
		t.Error("it is healthy before it listens")
	}
	r.serve()
	must(t, r.d.Healthy(within(t)))
	path := r.d.records.path
	must(t, os.Mkdir(path+".away", 0o700))
	exchange := func() { // at once: a look in between would create the missing store
		must(t, unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+".away", unix.RENAME_EXCHANGE))
	}
	exchange()
	if err := r.d.cache.refresh(); err == nil {
		t.Error("the store works without its file")
	}
	must(t, r.d.Healthy(within(t)))
	exchange()
	must(t, r.d.Healthy(within(t)))
}

// A reconciler that is stuck is reported, although the API answers.
func TestUnhealthyReconciler(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	must(t, r.d.Healthy(within(t)))
	// Nothing else holds the reconciler's lock for as long as this.
	release := make(chan struct{})
	taken := make(chan struct{})
	go func() {
		r.d.cache.mu.Lock()
		close(taken)
		<-release
		r.d.cache.mu.Unlock()
	}()
	<-taken
	defer close(release)
	// One look may already have passed the lock, and ends.
	if err := r.d.reconciler.decidedAnew(briefly(t)); err == nil {
		t.Error("it looks although it cannot")
	}
	if err := r.d.Healthy(briefly(t)); err == nil {
		t.Error("it is healthy although it cannot look")
	}
}

// A socket that accepts connections and never answers is unhealthy.
func TestUnhealthyAPI(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := filepath.Join(r.dir, "mute")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	must(t, unix.Listen(fd, 4))
	r.d.socket.Store(&path)
	if err := r.d.Healthy(briefly(t)); err == nil || !strings.Contains(err.Error(), "API") {
		t.Errorf("%v", err)
	}
}
