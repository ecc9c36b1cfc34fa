package outer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"clove.run/clove/egress/swap/link"
)

// hastyTime is how soon a program ends a connection whose certificate it does not trust. One that has opened a connection ahead
// of its requests keeps it for longer.
const hastyTime = 2 * time.Second

// secure begins TLS. A client that ends it at the certificate is reported.
func (s *Server) secure(c *agentConn) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), meetTime+headTime)
	defer cancel()
	secure := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: s.handshake})
	err := secure.HandshakeContext(ctx)
	alert := link.Alert(err)
	switch {
	case link.RefusesCertificate(alert):
		s.distrusted(c, "does not trust the run's authority, and has ended TLS: "+alert.Error())
	case err != nil && alert == 0 && c.hasty():
		// OpenSSL's alert is not encrypted yet, and so is no alert to crypto/tls. Any is lost where the client had not read all of the handshake.
		s.distrusted(c, seems)
	}
	return secure, err
}

const seems = "seems not to trust the run's authority: it has ended the connection as soon as it had the certificate, and has sent no request"

// changed follows a connection behind its handshake. Some clients, Node and wget among them, look at the certificate only then, and end the
// connection without a word.
func (s *Server) changed(conn net.Conn, state http.ConnState) {
	c := conn.(*tls.Conn).NetConn().(*agentConn)
	if state == http.StateClosed && c.hasty() {
		s.distrusted(c, seems)
	}
	if state != http.StateNew {
		c.show(time.Time{})
	}
}

// show notes when the client was shown the certificate; zero: it has sent something since, and so trusts it.
func (c *agentConn) show(when time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = when
}

// hasty reports, of a connection that has ended, whether the client has ended it at the certificate.
func (c *agentConn) hasty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.gone && !c.shown.IsZero() && time.Since(c.shown) < hastyTime
}

// distrusted reports a program.
func (s *Server) distrusted(c *agentConn, how string) {
	_ = s.control.Send(link.Report{Denied: &link.Denied{Request: link.Request{Host: c.host()}, Reason: link.ReasonTrust, Detail: "the program " + how}})
}
