package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"clove.run/clove/tools/link"
)

// send sends bytes, and returns the statuses of all answers until the server closes.
func (r *rig) send(text string) (statuses []int) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	must(r.t, err)
	defer conn.Close()
	must(r.t, conn.SetDeadline(time.Now().Add(soon)))
	go io.WriteString(conn, text)
	reader := bufio.NewReader(conn)
	for {
		a, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
		statuses = append(statuses, a.StatusCode)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	call, headers := single("tools/call", `"name":"echo"`, "echo")
	start := "POST " + Path + " HTTP/1.1\r\nHost: localhost\r\n"
	for name, row := range map[string]struct {
		text   string
		status int
	}{
		"control":          {raw(call, append(headers, "Connection", "close")...), 200},
		"a stated length":  {start + fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n{", maxBody+1), 413},
		"a huge length":    {start + "Content-Length: 9223372036854775807\r\n\r\n{", 413},
		"chunks":           {start + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("a", 0x1000)+"\r\n", maxBody/0x1000+1) + "0\r\n\r\n", 413},
		"headers":          {start + "X: " + strings.Repeat("a", 2*maxHeader) + "\r\n\r\n", 431},
		"chunks too large": {start + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{", 400},
	} {
		if got := r.send(row.text); len(got) != 1 || got[0] != row.status {
			t.Errorf("%s: %v, want %d", name, got, row.status)
		}
	}
	if len(r.calls) != 2 { // the control's, and the list that its result is compared with
		t.Errorf("%d calls were made, with the control", len(r.calls))
	}
}

// The request that is one too many is refused at once, and says that later is better.
func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	r := newRig(t, held(ends))
	call, headers := single("tools/call", `"name":"echo"`, "echo")
	for range maxRequests {
		conn, err := net.Dial("tcp", r.address)
		must(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, raw(call, headers...))
		must(t, err)
	}
	for range maxRequests {
		r.next("tool.call")
	}
	if a := r.post(call, headers...); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", a)
	}
	if len(r.calls) != 0 {
		t.Error("it was sent")
	}
	close(ends)
	for deadline := time.Now().Add(soon); r.post(call, headers...).status != 200; {
		if time.Now().After(deadline) {
			t.Fatal("no place is free again")
		}
	}
}

// A client begins as many large requests as it can, and ends none. It has no more room then; the clients of
// other listeners do. The control: four together take all that there is.
func TestRoomIsNotTakenFromOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.server.bodies.Take(maxBodies - 4*maxRequests*maxBody) })
	const large = "POST " + Path + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
	begin := func() bool {
		conn, err := net.Dial("tcp", r.address)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		must(t, conn.SetDeadline(time.Now().Add(soon)))
		_, err = io.WriteString(conn, large)
		must(t, err)
		line, err := bufio.NewReader(conn).ReadString('\r')
		must(t, err)
		return strings.Contains(line, "100 ") // its body is being read
	}
	for listener := range 5 {
		r.serve.Name = fmt.Sprint("listener", listener)
		r.listen()
		for i := range maxRequests {
			if got := begin(); got != (listener < 4) {
				t.Fatalf("listener %d, request %d: %t", listener, i, got)
			}
		}
		if begin() {
			t.Errorf("listener %d: one too many", listener)
		}
	}
}

// A listener that has ended is served no more; one that comes again goes on there.
func TestListenersComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, held(nil))
	call, headers := single("tools/call", `"name":"echo"`, "echo")
	go http.Post(r.url(), "application/json", nil)
	conn, err := net.Dial("tcp", r.address)
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, raw(call, headers...))
	must(t, err)
	c := r.next("tool.call")
	old := r.address
	r.listen()
	c.wantCancelled(t, "another copy of the listener")
	if a := r.ask("GET", Path, ""); a.status != http.StatusMethodNotAllowed || old == r.address {
		t.Errorf("%+v", a)
	}
	must(t, r.conn.Send(link.ToDoor{Leave: r.serve.Name}))
	must(t, r.conn.Send(link.ToDoor{Leave: "nothing"}))
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("it is served")
		}
	}
	must(t, r.conn.Send(link.ToDoor{}, r.channel()))                             // nothing, with a descriptor
	must(t, r.conn.Send(link.ToDoor{Serve: &r.serve}, r.channel()))              // too few
	must(t, r.conn.Send(link.ToDoor{Stdio: &r.serve}, r.channel()))              // too few
	must(t, r.conn.Send(link.ToDoor{Serve: &r.serve}, r.channel(), r.channel())) // no listener
	r.conn.Close()
	must(t, await(t, r.served))
}
