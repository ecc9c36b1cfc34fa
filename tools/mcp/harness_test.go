package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/tools"
	"clove.run/clove/tools/link"
)

// soon bounds every wait of a test.
const soon = 20 * time.Second

// The revisions that tests speak.
const (
	revisionOld = "2025-11-25"
	revisionNew = stateless
)

var revisions = []string{revisionOld, revisionNew}

// called is a call that came over the channel.
type called struct {
	ctx    context.Context
	method string
	params string
}

// rig is a Server with a listener, and the other side of its channel.
type rig struct {
	t       *testing.T
	server  *Server
	conn    *packet.Conn // control's
	served  chan error
	pid     int         // of the program, where it is one
	ended   chan string // names of Stdio whose client has gone
	calls   chan called
	skipped []called // that came before what next has waited for
	address string
	serve   link.Serve

	mu     sync.Mutex // guards tools
	tools  []tools.Tool
	pages  int // tools in a part of the list; 0: all
	answer func(c called, p api.ToolCallParams) (api.ToolCallResult, error)
	other  func(c called) (any, error) // methods but tool.list and tool.call
}

// newRig starts a Server. set changes the rig before.
func newRig(t *testing.T, set func(*rig)) *rig {
	t.Helper()
	conn, file, err := packet.Pair()
	must(t, err)
	r := &rig{t: t, conn: conn, served: make(chan error, 1), ended: make(chan string, 8), calls: make(chan called, 512), serve: link.Serve{Name: "worker", Title: "tools of a test"}}
	r.defaults()
	inherited, err := packet.Inherited(file)
	must(t, err)
	r.server = New(inherited)
	if set != nil {
		set(r)
	}
	go func() { r.served <- r.server.Serve() }()
	go r.control()
	t.Cleanup(func() { conn.Close() })
	r.listen()
	return r
}

// defaults have one tool, echo.
func (r *rig) defaults() {
	r.tools = []tools.Tool{{Name: "echo", Description: "says it again", Arguments: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}}
	r.answer = func(_ called, p api.ToolCallParams) (api.ToolCallResult, error) {
		if p.Tool != "echo" {
			return api.ToolCallResult{}, api.Failure(api.CodeNotFound, "", "there is no tool %q", p.Tool)
		}
		return api.ToolCallResult{Call: "1", Text: string(p.Arguments)}, nil
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) control() {
	for {
		var m link.FromDoor
		files, err := r.conn.Receive(&m)
		packet.CloseAll(files)
		if err != nil {
			return
		}
		if m.Ended != "" {
			r.ended <- m.Ended
		}
	}
}

// channel is a new channel: its file for the door. The other side answers as the rig says.
func (r *rig) channel() *os.File {
	r.t.Helper()
	own, file, err := channel.Pair()
	must(r.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = own.Serve(ctx, r.handle)
	}()
	r.t.Cleanup(func() {
		stop()
		<-done
		own.Close()
	})
	return file
}

func (r *rig) handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c := called{ctx, method, string(params)}
	r.calls <- c
	value, err := any(nil), error(nil)
	switch {
	case method == "tool.list":
		var p api.ToolListParams
		_ = json.Unmarshal(params, &p)
		value = r.list(p.After)
	case method == "tool.call":
		var p api.ToolCallParams
		_ = json.Unmarshal(params, &p)
		value, err = r.answer(c, p)
	case r.other != nil:
		value, err = r.other(c)
	default:
		err = api.Failure(api.CodeMethod, "", "not in this test")
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// list is a part of the tools.
func (r *rig) list(after string) (result api.ToolListResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := 0
	fmt.Sscan(after, &at)
	end := len(r.tools)
	if r.pages > 0 {
		end = min(end, at+r.pages)
	}
	if result.Tools = slices.Clone(r.tools[at:end]); end < len(r.tools) {
		result.Next = fmt.Sprint(end)
	}
	return result
}

// listen serves at a new listener.
func (r *rig) listen() {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(r.t, err)
	defer listener.Close()
	copied, err := listener.(*net.TCPListener).File()
	must(r.t, err)
	calls := r.channel()
	must(r.t, r.conn.Send(link.ToDoor{Serve: &r.serve}, copied, calls))
	copied.Close()
	calls.Close()
	r.address = listener.Addr().String()
}

// soon is a context that bounds a wait.
func (r *rig) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), soon)
}

// handler is that of the listener.
func (r *rig) handler() http.Handler {
	r.t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r.server.mu.Lock()
		h := r.server.served[r.serve.Name]
		r.server.mu.Unlock()
		if h != nil {
			return h.(http.Handler)
		}
	}
	r.t.Fatal("nothing is served")
	return nil
}

// names are what is served.
func (s *Server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.served))
}

// rename gives the first tool another name.
func (r *rig) rename(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[0].Name = name
}

func (r *rig) url() string { return "http://" + r.address + Path }

// connect is a client of the SDK's.
func (r *rig) connect(revision string, options *sdk.ClientOptions) *sdk.ClientSession {
	r.t.Helper()
	return connect(r.t, revision, options, &sdk.StreamableClientTransport{Endpoint: r.url(), MaxRetries: -1, HTTPClient: &http.Client{Transport: &http.Transport{}}})
}

func connect(t *testing.T, revision string, options *sdk.ClientOptions, over sdk.Transport) *sdk.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(ctx, over, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the revision is %s, not %s", got, revision)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// next is the next call over the channel of a method.
func (r *rig) next(method string) called {
	r.t.Helper()
	for i, c := range r.skipped {
		if c.method == method {
			r.skipped = slices.Delete(r.skipped, i, i+1)
			return c
		}
	}
	for {
		c := await(r.t, r.calls)
		if c.method == method {
			return c
		}
		r.skipped = append(r.skipped, c)
	}
}

// await waits for a value.
func await[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(soon):
		t.Fatal("nothing came")
	}
	return v
}

// reply is an answer over HTTP.
type reply struct {
	status int
	header http.Header
	text   string
}

// post sends a body; headers are name, value, name, value. An empty value removes one.
func (r *rig) post(body string, headers ...string) reply {
	return r.ask("POST", Path, body, headers...)
}

func (r *rig) ask(method, path, body string, headers ...string) reply {
	r.t.Helper()
	q, err := http.NewRequest(method, "http://"+r.address+path, strings.NewReader(body))
	must(r.t, err)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			q.Host = headers[i+1]
			continue
		}
		q.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			q.Header.Del(headers[i])
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: soon}
	a, err := client.Do(q)
	must(r.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	must(r.t, err)
	return reply{a.StatusCode, a.Header, string(text)}
}

// single is a message of revision 2026-07-28, with its headers.
func single(method, params string, name string) (body string, headers []string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		meta = params + "," + meta
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + meta + `}}`, []string{versionHeader, revisionNew, "Mcp-Method", method, "Mcp-Name", name}
}

// texts are the texts of a result.
func texts(result *sdk.CallToolResult) string {
	var all []string
	for _, c := range result.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			all = append(all, c.Text)
		case *sdk.ResourceLink:
			all = append(all, c.URI)
		}
	}
	return strings.Join(all, "|")
}

// call calls a tool, with arguments as text of JSON.
func call(t *testing.T, session *sdk.ClientSession, tool, arguments string) *sdk.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	must(t, err)
	return result
}
