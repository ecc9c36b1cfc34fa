package broker

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/passfd"
)

// fakeSwap gives what it gets to the test.
type fakeSwap struct {
	host string
	err  error
	got  chan [2]*os.File // what the gate's socket is connected to, and the server's
}

func (s *fakeSwap) Takes(name string, port uint16) bool { return name == s.host && port == 443 }

func (s *fakeSwap) Connect(_ string, _ uint16, server *os.File) (*os.File, error) {
	if s.err != nil {
		return nil, s.err
	}
	fd, err := unix.Dup(int(server.Fd()))
	if err != nil {
		return nil, err
	}
	agent, far, err := passfd.Pair(unix.SOCK_STREAM)
	s.got <- [2]*os.File{far, os.NewFile(uintptr(fd), "server")}
	return agent, err
}

// A connection to a host of the Swap's is connected as every other one, and its socket goes there; the gate gets another. The name is
// read first, also where the rule would let the connection pass without it. The controls: another name at the same address, and
// another port.
func TestConnectionsThroughASwap(t *testing.T) {
	t.Parallel()
	s := &fakeSwap{host: "api.example.com", got: make(chan [2]*os.File, 8)}
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com", "api.example.com:8443", "www.example.com", "93.184.216.34"), Swap: s})
	for _, name := range []string{"api.example.com", "www.example.com"} {
		f.resolver.set(name, "93.184.216.34")
		f.gate.lookup(name, dnsmsg.TypeA)
	}
	servers := f.leadsTo("93.184.216.34:443")
	f.leadsTo("93.184.216.34:8443")
	if answer := f.gate.open("93.184.216.34:443", ""); answer.Result != wire.ResultVerify {
		t.Errorf("without a name: %+v", answer)
	}
	_, conn := f.gate.connected("93.184.216.34:443", "www.example.com")
	alive(t, conn, <-servers)
	if len(s.got) != 0 {
		t.Error("control: another name goes through the swap")
	}
	if f.gate.connected("93.184.216.34:8443", "api.example.com"); len(s.got) != 0 {
		t.Error("control: another port goes through the swap")
	}
	answer := f.gate.open("93.184.216.34:443", "api.example.com")
	if answer.Result != wire.ResultAllowed || len(answer.Files) != 1 || len(s.got) != 1 {
		t.Fatalf("%+v", answer)
	}
	got := <-s.got
	agent, err := net.FileConn(answer.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	if _, err := io.WriteString(got[0], "through"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 7)
	if _, err := io.ReadFull(agent, text); string(text) != "through" {
		t.Errorf("%q, %v", text, err)
	}
	server := <-servers
	if _, err := io.WriteString(got[1], "sent on"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, text); string(text) != "sent on" {
		t.Errorf("%q, %v", text, err)
	}
	f.broker.Replace(rulesOf(t, "other.example.com")) // what is forbidden now is cut at the server's side
	if n, err := server.Read(text); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	closeFiles(got[:])
}

// Where the Swap fails, the connection does: nothing goes past it.
func TestASwapThatFails(t *testing.T) {
	t.Parallel()
	s := &fakeSwap{host: "api.example.com", err: errors.New("it has ended")}
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com"), Swap: s})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.gate.lookup("api.example.com", dnsmsg.TypeA)
	servers := f.leadsTo("93.184.216.34:443")
	if answer := f.gate.open("93.184.216.34:443", "api.example.com"); answer.Result != wire.ResultUnreachable || len(answer.Files) != 0 {
		t.Errorf("%+v", answer)
	}
	server := <-servers
	if n, err := server.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A name that leads to an address of this host or of a private network later gives the Swap no connection there. The control is the
// address that it had before.
func TestARebindingPastASwap(t *testing.T) {
	t.Parallel()
	s := &fakeSwap{host: "api.example.com", got: make(chan [2]*os.File, 8)}
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com"), Swap: s})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.gate.lookup("api.example.com", dnsmsg.TypeA)
	f.leadsTo("93.184.216.34:443")
	if answer := f.gate.open("93.184.216.34:443", "api.example.com"); answer.Result != wire.ResultAllowed || len(s.got) != 1 {
		t.Fatalf("control: %+v", answer)
	}
	for _, address := range []string{"127.0.0.1", "10.0.0.5", "169.254.169.254"} {
		f.resolver.set("api.example.com", address)
		f.gate.lookup("api.example.com", dnsmsg.TypeA)
		f.leadsTo(address + ":443")
		if answer := f.gate.open(address+":443", "api.example.com"); answer.Result == wire.ResultAllowed || len(s.got) != 1 {
			t.Errorf("%s: %+v", address, answer)
		}
	}
}
