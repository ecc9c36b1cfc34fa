package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// ask sends the client one order.
func ask(t *testing.T, proxy, server string, o order) report {
	t.Helper()
	in, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := serveOrders([]string{proxy, server}, bytes.NewReader(append(in, '\n')), &out); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	if first != ready {
		t.Fatalf("it begins with %q", first)
	}
	var r report
	if err := json.Unmarshal([]byte(rest), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func listener(t *testing.T, serve func(net.Listener)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return l.Addr().String()
}

// tunnels is a proxy that connects everything to one server, and refuses with "".
func tunnels(server string) func(net.Listener) {
	return func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil || request.Method != http.MethodConnect || server == "" {
					fmt.Fprintf(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
					return
				}
				onward, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer onward.Close()
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n")
				go func() {
					io.Copy(onward, conn)
					onward.(*net.TCPConn).CloseWrite()
				}()
				io.Copy(conn, onward)
			}()
		}
	}
}

func TestTheClientDoesTheSameOnEveryWay(t *testing.T) {
	server := listener(t, serveBytes)
	for name, proxy := range map[string]string{"direct": "", "proxy": listener(t, tunnels(server))} {
		if r := ask(t, proxy, "", order{Times: 3, Address: server}); r.Error != "" || len(r.Values) != 3 || r.Values[0] <= 0 {
			t.Errorf("%s: new connections: %+v", name, r)
		}
		if r := ask(t, proxy, "", order{Connections: 4, Bytes: 1 << 20, Address: server}); r.Error != "" || len(r.Values) != 1 || r.Values[0] <= 0 {
			t.Errorf("%s: rates: %+v", name, r)
		}
	}
}

// If a connection that must be denied is allowed, its time is not the time of a denial.
func TestTheClientSeesDenials(t *testing.T) {
	server := listener(t, serveBytes)
	denied := order{Times: 1, Address: server, Denied: true}
	if r := ask(t, listener(t, tunnels("")), "", denied); r.Error != "" || len(r.Values) != 1 {
		t.Errorf("a proxy that denies: %+v", r)
	}
	if r := ask(t, listener(t, tunnels(server)), "", denied); r.Error == "" {
		t.Error("a proxy that lets through is no error")
	}
	resets := listener(t, func(l net.Listener) {
		if conn, err := l.Accept(); err == nil {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	})
	if r := ask(t, "", "", order{Times: 1, Address: resets, Denied: true}); r.Error != "" {
		t.Errorf("a reset: %+v", r)
	}
	if r := ask(t, listener(t, tunnels("")), "", order{Times: 1, Address: server}); !strings.Contains(r.Error, "403") {
		t.Errorf("what is denied against expectation: %+v", r)
	}
}

func TestTheClientResolves(t *testing.T) {
	names, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	go serveNames(names)
	server := names.LocalAddr().String()
	for _, name := range []string{siteName, freshName} {
		if r := ask(t, "", server, order{Questions: 20, Name: name}); r.Error != "" || len(r.Values) != 1 || r.Values[0] <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	c := &client{server: server}
	if at, err := c.lookUp(siteName); err != nil || at.String() != serverAddress {
		t.Errorf("the site is at %s, %v", at, err)
	}
	if at, err := c.lookUp("one." + freshName); err != nil || at.As4()[3] < freshAddresses || at.As4()[3] >= 2*freshAddresses {
		t.Errorf("a new name is at %s, %v", at, err)
	}
}

func TestTheHelloShowsItsName(t *testing.T) {
	data, err := hello(siteName)
	if err != nil || data[0] != 0x16 || !bytes.Contains(data, []byte(siteName)) {
		t.Errorf("%.60q, %v", data, err)
	}
}

func TestTheServersRefuseWhatTheyDoNotKnow(t *testing.T) {
	if _, err := answerTo([]byte("short")); err == nil {
		t.Error("five bytes are answered")
	}
	if _, err := addressIn(nil); err == nil {
		t.Error("nothing is taken for an answer")
	}
}
