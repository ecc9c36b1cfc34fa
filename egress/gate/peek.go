package gate

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"clove.run/clove/egress/wire"
)

const (
	// openingBytes bounds the first bytes that are read to find a name. A TLS hello with
	// post-quantum keys has less than 2 KiB; servers refuse HTTP heads above 8 or 16 KiB.
	openingBytes = 16 << 10
	// openingTimeout bounds the time for all of them, also for a client that sends byte by byte.
	openingTimeout = 10 * time.Second
	// quietTimeout is how long the gate waits for a client that need not show a name: in
	// some protocols the server speaks first.
	quietTimeout = time.Second
	// deniedTimeout bounds the wait for a request that will be denied anyway.
	deniedTimeout = 2 * time.Second
)

// waits are the times above; tests use shorter ones.
type waits struct{ opening, quiet, denied time.Duration }

func clientWaits() waits { return waits{openingTimeout, quietTimeout, deniedTimeout} }

// opening is what the first bytes of a connection show.
type opening struct {
	bytes      []byte // all that was read; it must be forwarded
	name       string // as the client sent it, of letters, digits, ".", "-" and "_" only
	shown      wire.Shown
	http       bool        // a request: the client understands a response
	noResponse bool        // no HTTP response may be sent
	silent     bool        // the client has not sent anything yet
	reason     wire.Reason // why the gate refuses it; empty if it does not
}

var errOpeningTooLong = errors.New("too many bytes without a name")

// recorder keeps what is read from conn, so that it can be parsed again and forwarded.
// Writes are discarded, because a parser must not answer the agent.
type recorder struct {
	net.Conn
	seen   []byte
	offset int // read position in seen
}

// Read serves the recorded bytes first, so that several parsers can read the same opening.
func (r *recorder) Read(p []byte) (int, error) {
	if r.offset == len(r.seen) {
		if err := r.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.seen[r.offset:])
	r.offset += n
	return n, nil
}

// firstRead is the usual size of a hello or head.
const firstRead = 2 << 10

// more reads once from the connection.
func (r *recorder) more() error {
	free := cap(r.seen) - len(r.seen)
	if free == 0 {
		if len(r.seen) >= openingBytes {
			return errOpeningTooLong
		}
		// 2, 8 and 16 KiB: most openings need only the first.
		grown := make([]byte, len(r.seen), max(firstRead, min(4*cap(r.seen), openingBytes)))
		copy(grown, r.seen)
		r.seen = grown
	}
	n, err := r.Conn.Read(r.seen[len(r.seen):cap(r.seen)])
	r.seen = r.seen[:len(r.seen)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

func (r *recorder) Write(p []byte) (int, error)     { return len(p), nil }
func (r *recorder) Close() error                    { return nil }
func (r *recorder) SetDeadline(time.Time) error     { return nil }
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// peek reads the first bytes of conn. mayPass says whether a client without a name may
// continue. An ambiguous name is refused in any case.
func (w waits) peek(conn net.Conn, port uint16, mayPass bool) opening {
	r := &recorder{Conn: conn}
	began := time.Now()
	patience := w.opening
	if mayPass {
		patience = w.quiet
	}
	err := conn.SetReadDeadline(began.Add(patience))
	if err == nil {
		err = r.more()
	}
	if mayPass && errors.Is(err, os.ErrDeadlineExceeded) {
		return opening{shown: wire.ShownNothing, silent: true}
	}
	return r.judge(began.Add(w.opening), err, port, mayPass)
}

// judge reads the rest of an opening, after a first read that returned err.
func (r *recorder) judge(deadline time.Time, err error, port uint16, mayPass bool) opening {
	if err == nil {
		err = r.Conn.SetReadDeadline(deadline)
	}
	if err != nil {
		return opening{reason: reasonOf(err)}
	}
	found := r.name(port)
	found.bytes = r.seen
	if found.reason == wire.ReasonNoName && mayPass {
		found.reason, found.shown = "", wire.ShownNothing
	}
	if r.Conn.SetReadDeadline(time.Time{}) != nil && found.reason == "" {
		found.reason = wire.ReasonTooSlow
	}
	return found
}

// late reads the opening of a client that was silent for quietTimeout. It has no time limit
// until it sends something, and is then checked like the others: otherwise a second of
// silence would bypass every deny rule by name. A client that closes without sending has
// nothing to check.
func (w waits) late(conn net.Conn, port uint16) opening {
	r := &recorder{Conn: conn}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return opening{reason: wire.ReasonTooSlow}
	}
	err := r.more()
	if errors.Is(err, io.EOF) {
		return opening{shown: wire.ShownNothing}
	}
	return r.judge(time.Now().Add(w.opening), err, port, true)
}

// recordTypeHandshake is the first byte of a TLS hello (RFC 8446 section 5.1). No HTTP
// request begins with it.
const recordTypeHandshake = 0x16

// name chooses the parser by the first byte.
func (r *recorder) name(port uint16) opening {
	if r.seen[0] == recordTypeHandshake {
		return r.hello()
	}
	return r.head(port)
}

// reasonOf is the reason for a failure to read a name.
func reasonOf(err error) wire.Reason {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return wire.ReasonTooSlow
	case errors.Is(err, io.EOF):
		return wire.ReasonNoName
	}
	if errors.Is(err, errOpeningTooLong) {
		return wire.ReasonTooLong
	}
	return wire.ReasonMalformed
}

// validName reports whether a name can be sent to the broker as it is. The broker checks
// whether it is a valid host name.
func validName(name string) bool {
	const longest = 254 // RFC 1035 section 2.3.4, as text, with the last dot
	if name == "" || len(name) > longest {
		return false
	}
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
