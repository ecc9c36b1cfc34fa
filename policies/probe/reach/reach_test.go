package reach

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/policies/probe"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	if f := connect(listener.Addr().String(), false); !f.Done || len(f.Addresses) != 1 {
		t.Errorf("%+v", f)
	}
	listener.Close()
	if f := connect(listener.Addr().String(), false); f.Done || f.Errno != int(unix.ECONNREFUSED) {
		t.Errorf("%+v", f)
	}
	if f := connect("127.0.0.1:9", true); !f.Done {
		t.Errorf("%+v", f)
	}
	if f := connect("nonsense", false); !f.Untried {
		t.Errorf("%+v", f)
	}
	if f := Try(probe.Try{Kind: "tool", What: "fetch"}); f.Done || f.Detail == "" {
		t.Errorf("%+v", f)
	}
}
