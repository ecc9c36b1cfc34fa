package mcp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
)

// held has tools run until their call is cancelled, or ends is closed.
func held(ends chan struct{}) func(*rig) {
	return func(r *rig) {
		r.answer = func(c called, _ api.ToolCallParams) (api.ToolCallResult, error) {
			select {
			case <-c.ctx.Done():
			case <-ends:
			}
			return api.ToolCallResult{Text: "held"}, nil
		}
	}
}

func (c called) wantCancelled(t *testing.T, how string) {
	t.Helper()
	select {
	case <-c.ctx.Done():
	case <-time.After(soon):
		t.Error(how, ": the call goes on")
	}
}

// The call of a client that gives it up, whose connection breaks or whose session ends is cancelled.
func TestCallsAreCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, held(nil))
	for _, revision := range revisions {
		session := r.connect(revision, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go session.CallTool(ctx, &sdk.CallToolParams{Name: "echo"})
		c := r.next("tool.call")
		if cancel(); c.ctx.Err() != nil {
			t.Errorf("control: %s: it was cancelled before", revision)
		}
		c.wantCancelled(t, revision+" given up")
		// The session goes on.
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Error(revision, err)
		}
	}

	session := r.connect(revisionOld, nil)
	go session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"})
	c := r.next("tool.call")
	if a := r.ask("DELETE", Path, "", sessionHeader, session.ID(), versionHeader, revisionOld); a.status != http.StatusNoContent {
		t.Errorf("%+v", a)
	}
	c.wantCancelled(t, "its session ends")
	if a := r.post(listing, sessionHeader, session.ID(), versionHeader, revisionOld); a.status != http.StatusNotFound {
		t.Errorf("the session goes on: %+v", a)
	}

	other := r.connect(revisionOld, nil)
	call, headers := single("tools/call", `"name":"echo"`, "echo")
	for name, text := range map[string]string{
		"of a session": raw(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`, versionHeader, revisionOld, sessionHeader, other.ID()),
		"without one":  raw(call, headers...),
		"of no client": raw(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`, clientHeader, "1"),
	} {
		conn, err := net.Dial("tcp", r.address)
		must(t, err)
		_, err = conn.Write([]byte(text))
		must(t, err)
		c := r.next("tool.call")
		conn.Close()
		c.wantCancelled(t, "its connection breaks, "+name)
	}
	if _, err := other.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// listing is a request of an older revision.
const listing = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`

// raw is a request as bytes.
func raw(body string, headers ...string) string {
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", Path, len(body))
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	return text + "\r\n" + body
}

// While a call goes on, a client that asks for it gets notifications, and each gets comments.
func TestProgress(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	r := newRig(t, func(r *rig) {
		held(ends)(r)
		r.server.times.progress, r.server.times.alive = 20*time.Millisecond, 30*time.Millisecond
	})
	for _, revision := range revisions {
		seen := make(chan float64, 1000)
		session := r.connect(revision, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
			if n.Params.ProgressToken == "token" {
				seen <- n.Params.Progress
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		params := &sdk.CallToolParams{Name: "echo"}
		params.SetProgressToken("token")
		done := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, params)
			done <- err
		}()
		if first, second := await(t, seen), await(t, seen); second <= first {
			t.Errorf("%s: %v, then %v", revision, first, second)
		}
		cancel()
		<-done
	}

	body, headers := single("tools/call", `"name":"echo"`, "echo")
	conn, err := net.Dial("tcp", r.address)
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(raw(body, headers...)))
	must(t, err)
	lines := bufio.NewScanner(conn)
	comments := 0
	for comments < 2 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), ": ") {
			comments++
		}
		if strings.HasPrefix(lines.Text(), "data:") {
			t.Errorf("without a token: %s", lines.Text())
		}
	}
	close(ends)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"held"`) {
			return
		}
	}
	t.Error("the answer is missing")
}

// When control is gone, calls come to their end, those that only wait do at once, and the process ends. The
// listener stays for the next.
func TestControlIsGone(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	r := newRig(t, func(r *rig) {
		held(ends)(r)
		r.serve.Kernel = true
		r.other = func(c called) (any, error) {
			<-c.ctx.Done()
			return nil, c.ctx.Err()
		}
	})
	session := r.connect(revisionNew, nil)
	results := map[string]chan string{"echo": make(chan string, 1), "clove_mail_receive": make(chan string, 1)}
	for name, to := range results {
		go func() { to <- texts(call(t, session, name, "{}")) }()
	}
	r.next("tool.call")
	waiting := r.next("mail.receive")
	r.conn.Close()
	if got := await(t, results["clove_mail_receive"]); !strings.HasPrefix(got, "busy: clove is away") {
		t.Error(got)
	}
	waiting.wantCancelled(t, "a call that waits")
	select {
	case err := <-r.served:
		t.Fatalf("it ended before the answer: %v", err)
	default:
	}
	close(ends)
	if got := await(t, results["echo"]); got != "held" {
		t.Error(got)
	}
	if err := await(t, r.served); err != nil {
		t.Error(err)
	}
}
