package socket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/kernel/channel"
)

// maxDepth bounds the nesting of a line: no method's parameters nest deeper.
const maxDepth = 16

// connection is one of the agent's.
type connection struct {
	server *Server
	conn   *net.UnixConn
	out    outbox

	// Guarded by server.mu.
	used    time.Time // when the last line came
	flying  int       // calls in flight
	listens bool
}

// serve reads lines until the connection ends, or sends what it may not.
func (c *connection) serve() {
	defer c.out.close(c.conn) // what waits is still written
	defer c.server.forget(c)
	in := lines{conn: c.conn, allow: c.server.allow}
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, errTooLong):
			c.fail(nil, api.Failure(api.CodeTooLarge, "", "a line has at most %d bytes", api.MaxAgentLine))
			return
		case err != nil:
			if !errors.Is(err, io.EOF) {
				c.conn.Close() // another sandbox may hold the other end: no answer goes there
			}
			return
		}
		// An error is impossible: one token never exceeds the burst, and the context never ends.
		_ = c.server.rate.Wait(context.Background())
		c.touch()
		c.take(line)
	}
}

func (c *connection) touch() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.used = time.Now()
}

// take acts on one line.
func (c *connection) take(line []byte) {
	if _, err := rpc.ExamineWithin(line, maxDepth); err != nil {
		c.fail(nil, api.Failure(api.CodeParse, "", "the line cannot be read: %v", err))
		return
	}
	requests, batch := rpc.Requests(line)
	if batch {
		c.fail(nil, api.Failure(api.CodeRequest, "send one object a line", "an agent sends no batches"))
		return
	}
	r := requests[0]
	switch {
	case r.Fault != nil:
		c.fail(r.ID, api.Failure(api.Code(r.Fault.Code), "", "%s", r.Fault.Message))
	case r.Method == api.MethodCancel:
		c.cancel(r)
	case r.Method == agents.AgentListen.Name:
		c.listen(r)
	default:
		c.call(r)
	}
}

// call passes a request on. One without an id is a call whose answer no client reads.
func (c *connection) call(r rpc.Request) {
	params, waits, err := typed(r.Method, r.Params)
	if err != nil {
		c.fail(r.ID, api.ErrorOf(err))
		return
	}
	call := channel.Call{Method: r.Method, Params: params}
	number, ok := c.server.enter(c, r.ID, call, waits)
	if !ok {
		c.fail(r.ID, api.Failure(api.CodeBusy, "", "%d calls of the agent are in flight already", channel.MaxCalls))
		return
	}
	call.Number = number
	err = c.server.channel.Send(channel.FromGate{Call: &call})
	if err == nil {
		return
	}
	c.server.leave(number)
	if errors.Is(err, channel.ErrTooLong) {
		c.fail(r.ID, api.Failure(api.CodeTooLarge, "", "the call has at most %d bytes", api.MaxAgentLine))
	}
}

// typed decodes parameters into their method's type, and encodes that: no process behind
// the gate reads text of the agent's. waits is the row's Waits.
func typed(method string, params json.RawMessage) (text json.RawMessage, waits bool, err error) {
	row, known := agents.Find(method)
	if !known {
		return nil, false, api.Failure(api.CodeMethod, "agent.get is one", "there is no method %.64q for agents", method)
	}
	value, err := row.Decode(params)
	if err == nil {
		text, err = json.Marshal(value)
	}
	return text, row.Waits, err
}

// cancel ends a call of this connection.
func (c *connection) cancel(r rpc.Request) {
	var p api.CancelParams
	if err := api.DecodeParams(r.Params, &p); err != nil {
		c.fail(r.ID, api.ErrorOf(err))
		return
	}
	if number, found := c.server.find(c, p.ID); found {
		_ = c.server.channel.Send(channel.FromGate{Cancel: number}) // without a channel the gate ends
	}
	c.reply(rpc.Message{ID: r.ID, Result: json.RawMessage("{}")})
}

// find returns the number of a call by the id that its connection gave it.
func (s *Server) find(c *connection, id json.RawMessage) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, call := range s.calls {
		if call.connection == c && string(call.id) == string(id) {
			return number, true
		}
	}
	return 0, false
}

// listen answers agent.listen, and sends the notifications that waited for it. No other one
// comes between (Server.notify), and none before the answer.
func (c *connection) listen(r rpc.Request) {
	if _, err := agents.AgentListen.Decode(r.Params); err != nil {
		c.fail(r.ID, api.ErrorOf(err))
		return
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.listens = true
	c.reply(rpc.Message{ID: r.ID, Result: json.RawMessage("{}")})
	for _, n := range c.server.queue.take() {
		c.note(n)
	}
}

// answer sends what the supervisor answered.
func (c *connection) answer(id json.RawMessage, a channel.Answer) {
	if a.Error != nil {
		c.fail(id, a.Error)
		return
	}
	c.reply(rpc.Message{ID: id, Result: a.Result})
}

// fail answers with an error.
func (c *connection) fail(id json.RawMessage, e *api.Error) {
	text, err := json.Marshal(e)
	if err != nil {
		return // a value of clove's own making always encodes
	}
	c.reply(rpc.Message{ID: id, Error: text})
}

func (c *connection) note(n api.Notice) {
	c.out.put(c.conn, rpc.Message{Method: n.Method, Params: counted(n)}.Line())
}

// counted returns the parameters of a notification, with the count of one that replaces others.
func counted(n api.Notice) json.RawMessage {
	var fields map[string]json.RawMessage
	if n.Count < 2 || json.Unmarshal(n.Params, &fields) != nil {
		return n.Params
	}
	fields["count"] = json.RawMessage(strconv.Itoa(n.Count))
	text, err := json.Marshal(fields)
	if err != nil {
		return n.Params
	}
	return text
}

// reply sends the answer to a request. One without an id gets an answer only when it was
// no request at all.
func (c *connection) reply(m rpc.Message) {
	if m.ID == nil && m.Error == nil {
		return
	}
	c.out.put(c.conn, m.Line())
}
