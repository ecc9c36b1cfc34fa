package gate

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"clove.run/clove/egress/wire"
)

// Bounds of a denial's response. Only HTTP on port 80 gets one: any other protocol would
// misread it.
const (
	portHTTP = 80
	// responseTimeout bounds the sending of an error response and the wait for the client
	// to close. A close before the client has read could reset the connection and discard
	// the response.
	responseTimeout = time.Second
	drainBytes      = 64 << 10 // of a request body that the client is still sending
)

// refuse ends a connection that the gate itself refuses.
func (s *server) refuse(conn *net.TCPConn, target netip.AddrPort, seen opening) {
	s.refusals.tcp(target, seen.name, seen.reason)
	if seen.http && target.Port() == portHTTP {
		status := http.StatusForbidden
		if seen.reason == wire.ReasonTooLong {
			status = http.StatusRequestHeaderFieldsTooLarge
		}
		respond(conn, status, "clove: refused: "+explain(seen.reason))
		return
	}
	reset(conn)
}

// explain is the text for a client, without details that only the record needs.
func explain(reason wire.Reason) string {
	switch reason {
	case wire.ReasonNoName:
		return "the rule is by name, and the request shows none in its Host field"
	case wire.ReasonTooLong:
		return "the rule is by name, and the request's head is longer than 16 KiB"
	}
	return "the request cannot be read in one way only"
}

// turnAway ends a connection that the broker did not allow.
func (s *server) turnAway(conn *net.TCPConn, target netip.AddrPort, answer wire.Answer, seen opening) {
	if target.Port() != portHTTP || seen.noResponse {
		reset(conn)
		return
	}
	if len(seen.bytes) == 0 {
		seen = s.waits.readDenied(conn)
	}
	// Not HTTP after all: a response would be taken for the protocol's own data.
	if !seen.http {
		reset(conn)
		return
	}
	if answer.Result == wire.ResultUnreachable {
		respond(conn, http.StatusBadGateway, fmt.Sprintf("clove: %s is allowed, but cannot be reached", target))
		return
	}
	subject := target.String()
	if seen.name != "" {
		subject = seen.name
	}
	text := fmt.Sprintf("clove: %s is denied", subject)
	if answer.Rule != "" {
		text += ": " + answer.Rule
	}
	if answer.Hint != "" {
		text += "\n" + answer.Hint
	}
	respond(conn, http.StatusForbidden, text)
}

// readDenied reads a request that will be denied, because an HTTP client expects a response
// only after its request.
func (w waits) readDenied(conn *net.TCPConn) opening {
	if err := conn.SetReadDeadline(time.Now().Add(w.denied)); err != nil {
		return opening{}
	}
	r := &recorder{Conn: conn}
	if r.more() != nil || r.seen[0] == recordTypeHandshake {
		return opening{}
	}
	return r.head(portHTTP)
}

// respond answers a request in plain text and closes.
func respond(conn *net.TCPConn, status int, text string) {
	defer conn.Close()
	text = printable(text) + "\n"
	if err := conn.SetDeadline(time.Now().Add(responseTimeout)); err != nil {
		return
	}
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"text/plain; charset=us-ascii"}, "Cache-Control": {"no-store"}},
		Body:          io.NopCloser(bytes.NewReader([]byte(text))),
		ContentLength: int64(len(text)),
	}
	var whole bytes.Buffer // sent in one segment, for clients that read once
	if response.Write(&whole) != nil {
		return
	}
	if _, err := conn.Write(whole.Bytes()); err != nil || conn.CloseWrite() != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, drainBytes)) // until the client closes, or the deadline
}

// printable replaces everything but ASCII: the text includes names that the agent chose.
func printable(text string) string {
	clean := []byte(text)
	for i, c := range clean {
		if (c < ' ' || c > '~') && c != '\n' {
			clean[i] = '?'
		}
	}
	return string(clean)
}
