package mcp

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bounding is a connection, and the transport that makes it, with a bound of requests that have no answer yet.
// Where nothing more can be read, it ends when all are answered: the SDK cancels them at the end.
type bounding struct {
	sdk.Connection
	transport sdk.Transport
	door      *door
	out       *os.File // to the client

	mu      sync.Mutex          // guards the following
	open    map[jsonrpc.ID]bool // requests
	leaving bool                // no more are taken
	closed  bool
	rests   sync.Cond // open is empty, or closed
}

func newBounding(d *door, in, out *os.File) *bounding {
	b := &bounding{door: d, out: out, open: map[jsonrpc.ID]bool{}, transport: &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxBody}}
	b.rests.L = &b.mu
	return b
}

// Connect is for the SDK, which calls it once.
func (b *bounding) Connect(ctx context.Context) (_ sdk.Connection, err error) {
	b.Connection, err = b.transport.Connect(ctx)
	return b, err
}

// Read answers a request that is one too many itself: a client that reads no answers is not read then.
func (b *bounding) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := b.Connection.Read(ctx)
		if err != nil {
			defer b.probe()()
			b.rest()
			return nil, err
		}
		request, is := m.(*jsonrpc.Request)
		if !is || !request.IsCall() || b.enter(request.ID) {
			return m, nil
		}
		refusal := &jsonrpc.Error{Code: codeBusy, Message: "too many requests are in flight, or one with this id"}
		if err := b.Connection.Write(ctx, &jsonrpc.Response{ID: request.ID, Error: refusal}); err != nil {
			return nil, err
		}
	}
}

// probe writes an empty line now and then: one who writes no more may still read answers, or may have gone. Then
// the calls in flight end.
func (b *bounding) probe() (stop func()) {
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(b.door.times.probe)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				if _, err := b.out.WriteString("\n"); err != nil {
					b.door.cancel(func(*request) bool { return true })
					return
				}
			}
		}
	}()
	return func() { close(ended) }
}

func (b *bounding) enter(id jsonrpc.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaving || b.open[id] || len(b.open) >= maxRequests {
		return false
	}
	b.open[id] = true
	return true
}

// Write waits for a client that reads slowly, but for the last answers.
func (b *bounding) Write(ctx context.Context, m jsonrpc.Message) error {
	b.mu.Lock()
	if b.leaving {
		b.hurry()
	}
	b.mu.Unlock()
	err := b.Connection.Write(ctx, m)
	if response, is := m.(*jsonrpc.Response); is {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, response.ID)
		b.rests.Broadcast()
	}
	return err
}

// hurry bounds the time for writing. A file has no such bound, and needs none.
func (b *bounding) hurry() { _ = b.out.SetWriteDeadline(time.Now().Add(b.door.times.write)) }

func (b *bounding) Close() error {
	b.mu.Lock()
	b.closed = true
	b.rests.Broadcast()
	b.mu.Unlock()
	return b.Connection.Close()
}

// rest waits until all requests are answered.
func (b *bounding) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.open) > 0 && !b.closed {
		b.rests.Wait()
	}
}

// drain takes no more requests, and returns when all are answered.
func (b *bounding) drain() {
	b.mu.Lock()
	b.leaving = true
	b.hurry()
	b.mu.Unlock()
	b.rest()
}
