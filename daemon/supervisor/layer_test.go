package supervisor

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// pairOf is both ends of one connection.
func pairOf(t *testing.T) (here, there *rpc.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return rpc.New(a), rpc.New(b)
}

// The layer arrives as a descriptor of the same directory.
func TestLayerComesOverTheSocket(t *testing.T) {
	t.Parallel()
	here, there := pairOf(t)
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := sendFile(there, []byte("1"), dir); err != nil {
		t.Fatal(err)
	}
	got, err := receiveFile(here, "layer")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	a, _ := dir.Stat()
	b, err := got.Stat()
	if err != nil || !os.SameFile(a, b) {
		t.Errorf("%v, %v", b, err)
	}
}

// An answer without a descriptor, an error answer and a closed connection are errors.
func TestLayerDoesNotCome(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]func(c *rpc.Conn){
		"no descriptor": func(c *rpc.Conn) { _ = c.Respond([]byte("1"), api.Nothing{}, nil) },
		"an error":      func(c *rpc.Conn) { _ = c.Respond([]byte("1"), nil, api.Failure(api.CodeConflict, "", "it ends")) },
		"an end":        func(c *rpc.Conn) { c.Close() },
		"rubbish":       func(c *rpc.Conn) { _, _ = c.Write([]byte("\x00\n")) },
	} {
		here, there := pairOf(t)
		answer(there)
		if file, err := receiveFile(here, "layer"); err == nil {
			file.Close()
			t.Errorf("%s: there is a layer", what)
		}
	}
}
