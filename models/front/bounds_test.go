package front

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models/link"
)

// hold keeps a call in flight until the stream ends.
func hold(stream *os.File, out link.Answer) {
	_ = out.Head(link.Head{Status: 200, Type: "text/event-stream; charset=utf-8"})
	_, _ = out.Write([]byte("data: {}\n\n"))
	_, _ = io.Copy(io.Discard, stream)
}

// A client that goes ends its call: control hears its number, and the stream ends.
func TestAClientThatGoes(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(b link.Begin) link.ToFront{
		"while it waits":       func(link.Begin) link.ToFront { return link.ToFront{} },
		"while it is answered": nil,
	} {
		r := newRig(t, func(r *rig) {
			if r.provide = hold; decide != nil {
				r.decide = decide
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		q, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.address+"/v1/chat/completions", strings.NewReader(chat(`,"stream":true`)))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool, 1)
		go func() {
			if a, err := client.Do(q); err == nil {
				_, _ = io.Copy(io.Discard, a.Body)
				a.Body.Close()
			}
			ended <- true
		}()
		b := within(t, r.begun)
		if decide == nil {
			within(t, r.bodies)
		}
		cancel()
		if number := within(t, r.cancels); number != b.Number {
			t.Errorf("%s: the call %d was cancelled, not %d", name, number, b.Number)
		}
		within(t, ended)
		for deadline := time.Now().Add(soon); r.sides.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(name, ": the stream is open")
			}
		}
	}
}

// The call that is one too many is refused at once, and says that later is better.
func TestCallsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.provide = hold })
	for range maxCalls {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(chat("")), chat(""))
	}
	for range maxCalls {
		within(t, r.begun)
	}
	if a := r.ask("POST", "/v1/chat/completions", chat("")); a.status != 503 || a.header.Get("Retry-After") != "1" || a.header.Get("X-Should-Retry") != "true" {
		t.Errorf("%+v", a)
	}
	if len(r.begun) != 0 {
		t.Error("control was asked")
	}
}

// Of connections, those that are too many wait until another closes.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var open []net.Conn
	for range maxConnections {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	late, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := late.Write([]byte("HEAD / HTTP/1.0\r\n\r\n"))
		if err == nil {
			_, err = late.Read(make([]byte, 1))
		}
		answered <- err
	}()
	// The others are served although nothing of the late one is.
	if _, err := io.WriteString(open[0], "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := open[0].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		t.Fatalf("connection %d was served: %v", maxConnections+1, err)
	default:
	}
	open[1].Close()
	if err := within(t, answered); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	start := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	for name, row := range map[string]struct {
		text   string
		status int
	}{
		"control":          {start + fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(chat("")), chat("")), 200},
		"a stated length":  {start + fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n{", link.MaxBody+1), 413},
		"a huge length":    {start + "Content-Length: 9223372036854775807\r\n\r\n{", 413},
		"too huge":         {start + "Content-Length: 99999999999999999999\r\n\r\n{", 400},
		"headers":          {start + "X: " + strings.Repeat("a", 2*maxHeader) + "\r\n\r\n", 431},
		"many headers":     {start + strings.Repeat("X: a\r\n", maxHeader) + "\r\n", 431},
		"no JSON":          {start + "Connection: close\r\nContent-Length: 1\r\n\r\n{", 400},
		"chunks too large": {start + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{", 400},
	} {
		if got := r.raw(row.text); len(got) != 1 || got[0] != row.status {
			t.Errorf("%s: %v, want %d", name, got, row.status)
		}
	}
	if a := r.ask("POST", "/v1/chat/completions", strings.Repeat(" ", link.MaxBody+1)); a.status != 413 && a.err == nil {
		t.Errorf("%+v", a)
	}
	if len(r.begun) != 1 {
		t.Errorf("%d calls were asked for, with the control", len(r.begun))
	}
}

// An agent begins as many large requests as it can, and ends none. It gets no more room then;
// other agents of the same owner do. The control: four together take all that there is.
func TestRoomIsNotTakenFromOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const large = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
	hold := func(address string) string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(soon))
		if _, err := io.WriteString(conn, large); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\r')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	const each = maxOwnBodies / link.MaxBody
	for i := range each {
		if line := hold(r.address); !strings.Contains(line, "100 ") { // its body is being read
			t.Fatalf("request %d: %q", i, line)
		}
	}
	if a := r.ask("POST", "/v1/chat/completions", chat("")); a.status != 503 {
		t.Errorf("%+v", a)
	}
	for _, other := range []agent.ID{"1", "2", "3", "4"} {
		address, taken := r.listenFor(other), 0
		for range each {
			if strings.Contains(hold(address), "100 ") {
				taken++
			}
		}
		if other < "4" && taken != each || other == "4" && taken > 0 {
			t.Errorf("agent %s has room for %d requests", other, taken)
		}
	}
}

// A request has one reading. What is behind it is another request of the same agent, or none.
func TestSmuggledRequests(t *testing.T) {
	t.Parallel()
	start := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	inside := "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, row := range map[string]struct {
		text string
		want string // statuses
	}{
		"control: one behind the other": {"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n" + inside, "[200 200]"},
		"two lengths":                   {start + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inside), inside), "[400]"},
		"two lengths in one line":       {start + fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(inside), inside), "[400]"},
		"a length with a sign":          {start + "Content-Length: +5\r\n\r\n" + inside, "[400]"},
		"a negative length":             {start + "Content-Length: -5\r\n\r\n" + inside, "[400]"},
		"an odd encoding":               {start + "Transfer-Encoding: xchunked\r\n\r\n" + inside, "[501]"},
		"two encodings":                 {start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inside, "[501]"},
		"a space before the colon":      {start + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inside, "[400]"},
		"a folded header":               {start + "X: a\r\n Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + inside, "[400 200]"},
		"no host":                       {"GET /v1/models HTTP/1.1\r\n\r\n" + inside, "[400]"},
		"two hosts":                     {"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + inside, "[400]"},
		"a name with a line":            {"GET /v1/models HTTP/1.1\r\nHost: a\r\nX\nY: b\r\n\r\n" + inside, "[400]"},
	} {
		r := newRig(t, nil)
		if got := fmt.Sprint(r.raw(row.text)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
		if len(r.begun) != 0 {
			t.Errorf("%s: a call was asked for", name)
		}
	}
}

// Chunks and a length: the chunks are the body, and the connection ends behind it.
func TestChunksBesideALength(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := chat("")
	got := r.raw(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", len(body), body))
	if got[0] != 200 || len(r.begun) != 1 {
		t.Errorf("%v, %d calls", got, len(r.begun))
	}
	if sent := within(t, r.bodies); !strings.Contains(sent, "Hello") {
		t.Error(sent)
	}
}

// A run that has ended is served no more; one whose listener comes again goes on there.
func TestRunsComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if a := r.ask("HEAD", "/", ""); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	old := r.address
	r.listen()
	if a := r.ask("HEAD", "/", ""); a.status != 200 || old == r.address {
		t.Errorf("%+v", a)
	}
	if err := r.conn.Send(link.ToFront{Leave: theRun}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(soon); r.ask("HEAD", "/", "").err == nil; {
		if time.Now().After(deadline) {
			t.Fatal("it is served")
		}
	}
	r.conn.Close()
	if err := within(t, r.served); err != nil {
		t.Error(err)
	}
}
