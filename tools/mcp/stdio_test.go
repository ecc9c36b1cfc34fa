package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/tools/link"
)

// stdio serves a client at two pipes, whose ends these are.
func (r *rig) stdio() (in, out *os.File) {
	r.t.Helper()
	theirIn, in, err := os.Pipe()
	must(r.t, err)
	out, theirOut, err := os.Pipe()
	must(r.t, err)
	calls := r.channel()
	serve := r.serve
	serve.Name = "terminal"
	must(r.t, r.conn.Send(link.ToDoor{Stdio: &serve}, theirIn, theirOut, calls))
	for _, file := range []*os.File{theirIn, theirOut, calls} {
		file.Close()
	}
	r.t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}

func TestAClientAtPipes(t *testing.T) {
	t.Parallel()
	r := newRig(t, held(nil))
	for _, revision := range revisions {
		in, out := r.stdio()
		session := connect(t, revision, nil, &sdk.IOTransport{Reader: out, Writer: in})
		list, err := session.ListTools(t.Context(), nil)
		must(t, err)
		if len(list.Tools) != 1 || list.Tools[0].Name != "echo" {
			t.Errorf("%s: %+v", revision, list.Tools)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go session.CallTool(ctx, &sdk.CallToolParams{Name: "echo"})
		c := r.next("tool.call")
		cancel()
		c.wantCancelled(t, revision)
		go session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"})
		c = r.next("tool.call")
		in.Close()
		out.Close()
		c.wantCancelled(t, revision+", its client has gone")
		if name := await(t, r.ended); name != "terminal" {
			t.Error(name)
		}
		if len(r.server.names()) != 1 {
			t.Errorf("%s: it is kept", revision)
		}
	}
}

// A program that writes its requests and no more gets the answers.
func TestAClientThatWritesNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	in, out := r.stdio()
	call, _ := single("tools/call", `"name":"echo","arguments":{"a":1}`, "")
	call = strings.Replace(call, `"id":1`, `"id":2`, 1)
	_, err := io.WriteString(in, initialize+"\n"+call+"\n")
	must(t, err)
	in.Close()
	text, err := io.ReadAll(out)
	must(t, err)
	if !strings.Contains(string(text), `{\"a\":1}`) || !strings.Contains(string(text), `"protocolVersion":"2025-11-25"`) {
		t.Errorf("%s", text)
	}
	await(t, r.ended)

	in, out = r.stdio() // a subscription ends at once
	listen, _ := single("subscriptions/listen", `"notifications":{"toolsListChanged":true}`, "")
	_, err = io.WriteString(in, listen+"\n")
	must(t, err)
	in.Close()
	if text, err = io.ReadAll(out); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%v: %s", err, text)
	}
	await(t, r.ended)
}

// A client that reads no answers is not read either, and what it may have in flight is bounded. The control is
// one that reads.
func TestPipesAreBounded(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	r := newRig(t, held(ends))
	in, out := r.stdio()
	written := make(chan int, 1)
	go func() {
		n := 0
		for ; n < 100_000; n++ {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", n); err != nil {
				break
			}
		}
		written <- n
	}()
	for range maxRequests {
		r.next("tool.call")
	}
	select {
	case n := <-written:
		t.Errorf("%d requests were read", n)
	case <-time.After(300 * time.Millisecond):
	}
	if n := len(r.calls); n > 0 {
		t.Errorf("%d calls too many", n)
	}
	lines := bufio.NewReader(out)
	for range 1000 { // control: it goes on when the client reads
		line, err := lines.ReadString('\n')
		must(t, err)
		if !strings.Contains(line, "too many requests are in flight") {
			t.Fatal(line)
		}
	}
	close(ends)
	in.Close()
	out.Close()
	await(t, r.ended)
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, text := range []string{"{\n", "no JSON\n", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` + strings.Repeat("a", 2*maxBody) + `"}}` + "\n"} {
		in, out := r.stdio()
		go func() {
			_, _ = io.WriteString(in, text)
			if text == "{\n" {
				in.Close()
			}
		}()
		_, err := io.ReadAll(out)
		must(t, err)
		await(t, r.ended)
	}
}

// A client that reads no answers keeps neither its own end from coming nor that of the process.
func TestAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	var held atomic.Pointer[chan struct{}]
	r := newRig(t, func(r *rig) {
		r.server.times.write = 100 * time.Millisecond
		r.answer = func(c called, _ api.ToolCallParams) (api.ToolCallResult, error) {
			select {
			case <-c.ctx.Done():
			case <-*held.Load():
			}
			return api.ToolCallResult{Text: "held"}, nil
		}
	})
	stuck := func() (ends chan struct{}) {
		ends = make(chan struct{})
		held.Store(&ends)
		in, _ := r.stdio()
		go func() {
			for n := 0; ; n++ {
				if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", n); err != nil {
					return
				}
			}
		}()
		for range maxRequests {
			r.next("tool.call")
		}
		time.Sleep(100 * time.Millisecond) // until the pipe is full
		return ends
	}
	stuck()
	must(t, r.conn.Send(link.ToDoor{Leave: "terminal"}))
	await(t, r.ended)
	close(stuck()) // there are answers that cannot be written
	time.Sleep(100 * time.Millisecond)
	must(t, r.conn.Send(link.ToDoor{Leave: "terminal"}))
	await(t, r.ended)
	ends := stuck()
	r.conn.Close()
	close(ends)
	must(t, await(t, r.served))
}

// A Leave ends a client, and the end of control does when its calls are answered.
func TestTheEndOfPipes(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	r := newRig(t, held(ends))
	in, out := r.stdio()
	session := connect(t, revisionOld, nil, &sdk.IOTransport{Reader: out, Writer: in})
	go session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"})
	c := r.next("tool.call")
	must(t, r.conn.Send(link.ToDoor{Leave: "terminal"}))
	c.wantCancelled(t, "Leave")
	await(t, r.ended)

	in, out = r.stdio()
	session = connect(t, revisionOld, nil, &sdk.IOTransport{Reader: out, Writer: in})
	result := make(chan string, 1)
	go func() { result <- texts(call(t, session, "echo", "{}")) }()
	r.next("tool.call")
	r.conn.Close()
	select {
	case err := <-r.served:
		t.Fatalf("it ended before the answer: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(ends)
	if got := await(t, result); got != "held" {
		t.Error(got)
	}
	must(t, await(t, r.served))
}
