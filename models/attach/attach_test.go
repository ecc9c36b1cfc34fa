package attach

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
)

// soon bounds every wait of a test.
const soon = 20 * time.Second

// attached is a run that a cloved got.
type attached struct {
	ctx      context.Context
	run      agent.ID
	listener *os.File
}

// cloved accepts supervisors in a directory, until the returned function ends it.
func cloved(t *testing.T, dir string, refuse error, changed ...chan struct{}) (runs chan attached, end func()) {
	t.Helper()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	runs = make(chan attached, 16)
	ctx, cancel := context.WithCancel(t.Context())
	go Accept(ctx, l, func(ctx context.Context, run agent.ID, _ For, listener *os.File) (Use, error) {
		if refuse != nil {
			listener.Close()
			return Use{}, refuse
		}
		runs <- attached{ctx, run, listener}
		used := func() []agent.ModelUse { return []agent.ModelUse{{Model: string(run), Calls: 3}} }
		return Use{Final: used, SoFar: used, Changed: append(changed, nil)[0]}, nil
	})
	end = func() { cancel(); l.Close() }
	t.Cleanup(end)
	return runs, end
}

// listening is an agent's listener, and its address.
func listening(t *testing.T) (file *os.File, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if file, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	return file, l.Addr().String()
}

func run(id agent.ID) agent.Run { return agent.Run{Spec: agent.Spec{ID: id}} }

func within[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(soon):
		t.Fatal("nothing came")
	}
	return v
}

// cloved gets the listener itself; a cloved that comes later gets it, too, and answers what
// waited meanwhile.
func TestAListenerOutlivesCloved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, end := cloved(t, dir, nil)
	file, address := listening(t)
	used, err := NewClient(dir).Serve(t.Context(), run("r1"), file)
	if err != nil {
		t.Fatal(err)
	}
	first := within(t, runs)
	if u := used(); len(u) != 1 || u[0].Model != "r1" || u[0].Calls != 3 {
		t.Errorf("it used %+v", u)
	}
	if first.run != "r1" {
		t.Errorf("%+v", first)
	}
	first.listener.Close()
	end()
	within(t, first.ctx.Done())

	answered := make(chan error, 1)
	go func() { // cloved is away: the connection waits
		a, err := http.Get("http://" + address)
		if err == nil {
			a.Body.Close()
		}
		answered <- err
	}()
	next, _ := cloved(t, dir, nil)
	second := within(t, next)
	l, err := net.FileListener(second.listener)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes") }))
	if err := within(t, answered); err != nil || second.run != "r1" {
		t.Errorf("%+v, %v", second, err)
	}
}

// The end of a run, or of its supervisor, ends its service, and no other's.
func TestARunEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, _ := cloved(t, dir, nil)
	begin := func(id agent.ID) (attached, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		file, _ := listening(t)
		if _, err := NewClient(dir).Serve(ctx, run(id), file); err != nil {
			t.Fatal(err)
		}
		a := within(t, runs)
		a.listener.Close()
		return a, cancel
	}
	ends, cancel := begin("ends")
	stays, stop := begin("stays")
	defer stop()
	cancel()
	within(t, ends.ctx.Done())
	if err := stays.ctx.Err(); err != nil {
		t.Error(err)
	}
}

func TestWhyARunIsNotServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, _ := listening(t)
	if _, err := NewClient(dir).Serve(t.Context(), run("r1"), file); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without cloved: %v", err)
	}
	if file.Close() == nil {
		t.Error("the listener was not closed")
	}
	cloved(t, dir, errors.New("no run r1"))
	file, _ = listening(t)
	if _, err := NewClient(dir).Serve(t.Context(), run("r1"), file); err == nil || !strings.HasSuffix(err.Error(), "no run r1") {
		t.Error(err)
	}
}

// What is no request of a supervisor ends the connection, and reaches nobody.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, _ := cloved(t, dir, nil)
	one, _ := listening(t)
	defer one.Close()
	for name, row := range map[string]struct {
		message any
		files   []*os.File
	}{
		"no run":        {request{}, []*os.File{one}},
		"no listener":   {request{Run: "r1"}, nil},
		"two listeners": {request{Run: "r1"}, []*os.File{one, one}},
		"another type":  {[]int{1}, []*os.File{one}},
	} {
		conn, err := packet.Dial(filepath.Join(dir, Socket))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Send(row.message, row.files...); err != nil {
			t.Fatal(err)
		}
		var r reply
		if files, err := conn.Receive(&r); !errors.Is(err, io.EOF) {
			packet.CloseAll(files)
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		conn.Close()
	}
	if len(runs) != 0 {
		t.Errorf("%+v", <-runs)
	}
}

// The socket is root's, also where an old one was left with another mode, and its path may be
// longer than an address of a socket.
func TestTheSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Socket), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(filepath.Join(dir, Socket))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What a cloved had counted stays in the figures when it dies, and the next one's are added.
func TestFiguresOutliveCloved(t *testing.T) {
	t.Parallel()
	dir, changed := t.TempDir(), make(chan struct{}, 1)
	runs, end := cloved(t, dir, nil, changed)
	file, _ := listening(t)
	used, err := NewClient(dir).Serve(t.Context(), run("r1"), file)
	if err != nil {
		t.Fatal(err)
	}
	first := within(t, runs)
	changed <- struct{}{}
	changed <- struct{}{} // behind the first was sent
	for len(changed) > 0 {
		time.Sleep(time.Millisecond)
	}
	end()
	within(t, first.ctx.Done())
	if u := used(); len(u) != 1 || u[0].Calls != 3 {
		t.Errorf("without cloved: %+v", u)
	}
	next, _ := cloved(t, dir, nil)
	within(t, next)
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		if u := used(); len(u) == 1 && u[0].Calls == 6 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v", u)
		}
	}
}
