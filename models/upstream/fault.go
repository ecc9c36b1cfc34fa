package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"net/url"

	"clove.run/clove/models/link"
)

// unconnected is control's reason why there is no connection.
type unconnected struct{ error }

// trace notes how far a request comes.
func (e *exchange) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:          func(httptrace.GotConnInfo) { e.sent.Store(true) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { e.unproven.Store(err != nil) },
	})
}

// maxDetail bounds what is said of an error, in bytes.
const maxDetail = 300

// fault is why there was no answer, with what an administrator wants to know of it: addresses
// and names of a certificate, and nothing that came after the key was sent.
func (e *exchange) fault(ctx context.Context, err error) (link.Fault, string) {
	var failed *url.Error
	slow := context.Cause(ctx) == errSlow && e.done.First == 0
	switch {
	case errors.As(err, &failed):
	case slow:
		return link.FaultTime, ""
	default:
		return "", ""
	}
	var none unconnected
	detail := failed.Err.Error()
	detail = detail[:min(len(detail), maxDetail)]
	switch {
	case errors.As(err, &none):
		return link.FaultDial, detail
	case e.unproven.Load():
		return link.FaultTLS, detail
	case failed.Timeout(), slow:
		return link.FaultTime, ""
	}
	return link.FaultLost, ""
}
