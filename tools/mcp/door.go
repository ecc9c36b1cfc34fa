package mcp

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/tools/link"
)

// door is what one Serve has, over HTTP or pipes: the calls of its clients go over one channel.
type door struct {
	link.Serve
	conn   *channel.Conn
	caller *channel.Caller
	times  times
	// leaving ends when the process is about to: calls that only wait end with it, others go on.
	leaving context.Context
	leave   context.CancelFunc

	listing sync.Mutex // held while tools are listed: one list at a time bounds their bytes

	mu      sync.Mutex // guards the following
	last    uint64
	flying  map[uint64]*request
	clients map[string]client // requests over HTTP, by the number that the handler gave them
	results map[string]shape  // by the name of a tool that was listed
}

// client has sent a request over HTTP.
type client struct {
	ctx context.Context // ends when it goes
	out *answer
}

// request is one that is being answered.
type request struct {
	session string
	cancel  context.CancelFunc
}

func newDoor(of link.Serve, calls *os.File, t times) (*door, error) {
	taken, err := packet.Inherited(calls) // it may be blocking
	if err != nil {
		return nil, err
	}
	conn := &channel.Conn{Conn: taken}
	d := &door{Serve: of, conn: conn, caller: channel.NewCaller(conn), times: t,
		flying: map[uint64]*request{}, clients: map[string]client{}, results: map[string]shape{}}
	d.leaving, d.leave = context.WithCancel(context.Background())
	go func() { _ = d.caller.Receive() }() // ends with close; calls are refused then
	return d, nil
}

// close ends the calls in flight, and the channel.
func (d *door) close() {
	d.leave()
	d.cancel(func(*request) bool { return true })
	d.conn.Close()
}

// server is one of the SDK's for this door. newSession makes the ids of its sessions; nil: it has none.
func (d *door) server(newSession func() string) *sdk.Server {
	options := &sdk.ServerOptions{GetSessionID: newSession, Capabilities: &sdk.ServerCapabilities{
		Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{}}}
	s := sdk.NewServer(&sdk.Implementation{Name: "clove", Title: d.Title, Version: strconv.Itoa(api.Version)}, options)
	s.AddTool(&sdk.Tool{Name: anything, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return d.callTool(ctx, ctx.Value(original{}).(*sdk.CallToolRequest))
	})
	s.AddResource(&sdk.Resource{URI: anything, Name: anything}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return d.readResource(ctx, ctx.Value(original{}).(*sdk.ReadResourceRequest))
	})
	s.AddReceivingMiddleware(d.methods)
	return s
}

// anything is the one tool, and the one resource, that the SDK knows: what each revision adds to a result is
// the SDK's. Every call comes to it, whatever its client calls, and no list has it.
const anything = "clove://anything"

// original is the key of the request as the client sent it.
type original struct{}

// methods answers what this package serves itself; the rest, as initialize, is the SDK's. There, a subscription
// ends at once, as the capabilities have none.
func (d *door) methods(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		ctx, end := d.enter(ctx, r)
		defer end()
		switch r := r.(type) {
		case *sdk.ListToolsRequest:
			return d.listTools(ctx, r)
		case *sdk.CallToolRequest:
			params := *r.Params
			params.Name = anything
			return next(context.WithValue(ctx, original{}, r), method, &sdk.CallToolRequest{Session: r.Session, Params: &params, Extra: r.Extra})
		case *sdk.ListResourcesRequest:
			return d.listResources(ctx)
		case *sdk.ListResourceTemplatesRequest:
			return d.listTemplates()
		case *sdk.ReadResourceRequest:
			params := *r.Params
			params.URI = anything
			return next(context.WithValue(ctx, original{}, r), method, &sdk.ReadResourceRequest{Session: r.Session, Params: &params, Extra: r.Extra})
		}
		return next(ctx, method, r)
	}
}

// enter notes a request, whose context ends also when its client over HTTP goes.
func (d *door) enter(ctx context.Context, r sdk.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	number := d.last
	d.flying[number] = &request{session: r.GetSession().ID(), cancel: cancel}
	rest := func() {}
	if extra := r.GetExtra(); extra != nil {
		if client, is := d.clients[extra.Header.Get(clientHeader)]; is {
			stop := context.AfterFunc(client.ctx, cancel)
			quiet := client.out.keepAlive(d.times.alive)
			rest = func() { stop(); quiet() }
		}
	}
	return ctx, func() {
		rest()
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.flying, number)
	}
}

// cancel ends requests.
func (d *door) cancel(which func(*request) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.flying {
		if which(r) {
			r.cancel()
		}
	}
}

// admit gives a request over HTTP a number, by which enter finds it.
func (d *door) admit(c client) (number string, end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	number = strconv.FormatUint(d.last, 10)
	d.clients[number] = c
	return number, func() {
		c.out.end()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.clients, number)
	}
}

// ask makes a typed call.
func ask[P, R any](ctx context.Context, d *door, row api.Row[P, R], params P) (result R, err error) {
	text, err := json.Marshal(params)
	if err == nil {
		text, err = d.caller.Call(ctx, row.Name, text, row.Waits)
	}
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}
