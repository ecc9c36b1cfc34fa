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

const (
	portHTTP = 80
	// farewellTimeout bounds the sending of a refusal and the wait for the
	// client's end: closing before it has read would destroy what was sent.
	farewellTimeout = time.Second
	farewellBytes   = 64 << 10 // of a body that the client still sends
)

// refuse turns away what the gate itself refuses.
func (s *server) refuse(conn *net.TCPConn, target netip.AddrPort, seen opening) {
	s.refusals.tcp(target, seen.name, seen.reason)
	if seen.http && target.Port() == portHTTP {
		say(conn, http.StatusForbidden, "clove: refused: "+explain(seen.reason))
		return
	}
	reset(conn)
}

func explain(reason wire.Reason) string {
	if reason == wire.ReasonNoName {
		return "the rule is by name, and the request shows none in its Host field"
	}
	return "the request cannot be read in one way only"
}

// turnAway ends a connection that the broker did not allow.
func (s *server) turnAway(conn *net.TCPConn, target netip.AddrPort, answer wire.Answer, seen opening) {
	if target.Port() != portHTTP || seen.mute {
		reset(conn)
		return
	}
	if len(seen.bytes) == 0 {
		seen = s.waits.readComplaint(conn)
	}
	if !seen.http {
		reset(conn)
		return
	}
	if answer.Verdict == wire.VerdictUnreachable {
		say(conn, http.StatusBadGateway, fmt.Sprintf("clove: %s is allowed, but cannot be reached", target))
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
	say(conn, http.StatusForbidden, text)
}

// readComplaint reads the request that will be denied, because a client takes no
// answer before it has asked.
func (w waits) readComplaint(conn *net.TCPConn) opening {
	if err := conn.SetReadDeadline(time.Now().Add(w.complaint)); err != nil {
		return opening{}
	}
	r := &recorder{Conn: conn}
	if r.more() != nil || r.seen[0] == recordTypeHandshake {
		return opening{}
	}
	return r.head(portHTTP)
}

// say answers a request in plain text and closes.
func say(conn *net.TCPConn, status int, text string) {
	defer conn.Close()
	text = printable(text) + "\n"
	if err := conn.SetDeadline(time.Now().Add(farewellTimeout)); err != nil {
		return
	}
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"text/plain; charset=us-ascii"}, "Cache-Control": {"no-store"}},
		Body:          io.NopCloser(bytes.NewReader([]byte(text))),
		ContentLength: int64(len(text)),
	}
	var whole bytes.Buffer // one segment: a client that reads once has the reason
	if response.Write(&whole) != nil {
		return
	}
	if _, err := conn.Write(whole.Bytes()); err != nil || conn.CloseWrite() != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, farewellBytes)) // until its end or the deadline
}

// printable keeps ASCII alone: rules are written by people, names by agents.
func printable(text string) string {
	clean := []byte(text)
	for i, c := range clean {
		if (c < ' ' || c > '~') && c != '\n' {
			clean[i] = '?'
		}
	}
	return string(clean)
}
