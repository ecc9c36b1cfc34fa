package swap

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// A client that does not trust the run's authority is reported as such, in each version of TLS, also one that says nothing of it. The controls are
// one that does, and one that goes away before it has seen a certificate.
func TestAClientThatDoesNotTrustTheAuthority(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		r, _ := newRig(t, secrets.Terms{}, echo)
		if a := r.get("/"); a.status != 200 {
			t.Fatalf("control: %+v", a)
		}
		gone, err := r.connect(site)
		must(t, err)
		gone.Close()
		conn, err := r.connect(site)
		must(t, err)
		if err := tls.Client(conn, &tls.Config{ServerName: site, MaxVersion: version, RootCAs: x509.NewCertPool()}).Handshake(); err == nil {
			t.Fatal("control: it trusts the authority")
		}
		conn.Close()
		r.noted(1)
		conn, err = r.connect(site)
		must(t, err)
		silent := tls.Client(conn, &tls.Config{ServerName: site, MaxVersion: version, InsecureSkipVerify: true})
		must(t, silent.Handshake())
		silent.NetConn().Close() // as Node ends one
		if d := r.noted(2); len(d) != 2 || d[1].Reason != link.ReasonTrust || !strings.Contains(d[1].Detail, "seems not to trust") {
			t.Errorf("%x: %+v", version, d)
		}
		r.noted(2)
		conn, err = r.connect(site)
		must(t, err)
		cut := tls.Client(conn, &tls.Config{ServerName: site, MaxVersion: version, InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return conn.Close() }})
		if err := cut.Handshake(); err == nil && version == tls.VersionTLS12 {
			t.Fatal("control: the connection goes on")
		}
		if d := r.noted(3); len(d) != 3 || d[2].Reason != link.ReasonTrust {
			t.Errorf("%x: %+v", version, d)
		}
		if d := r.noted(2); d[0].Reason != link.ReasonTrust || d[0].Host != site+":443" || !strings.Contains(d[0].Detail, "does not trust the run's authority") {
			t.Errorf("%x: %+v", version, d)
		}
	}
}

// A server that wants a certificate of its client is named, whenever TLS says it. One that asks and goes on without is served.
func TestAServerThatWantsACertificate(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			with := func(auth tls.ClientAuthType) func(*httptest.Server) {
				return func(s *httptest.Server) {
					s.TLS = &tls.Config{ClientAuth: auth, MaxVersion: version}
					s.EnableHTTP2 = http2
					s.Config.ErrorLog = log.New(io.Discard, "", 0)
				}
			}
			control, placeholder := newRig(t, secrets.Terms{}, echo, with(tls.RequestClientCert))
			if a := control.get("/", "Authorization: Bearer "+placeholder); a.status != http.StatusOK {
				t.Errorf("control, %x, HTTP/2 %v: %+v", version, http2, a)
			}
			r, placeholder := newRig(t, secrets.Terms{}, echo, with(tls.RequireAnyClientCert))
			a := r.get("/", "Authorization: Bearer "+placeholder)
			if a.err == nil && (a.status != http.StatusBadGateway || !strings.Contains(a.text, "asked for a certificate of its client")) {
				t.Errorf("%x, HTTP/2 %v: %+v", version, http2, a)
			}
			if d := r.noted(1); d[0].Reason != link.ReasonClient || d[0].Host != site+":443" {
				t.Errorf("%x, HTTP/2 %v: %+v", version, http2, d)
			}
		}
	}
}

// An error that is no alert of the other side is none.
func TestOtherErrorsAreNoAlert(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, io.EOF, tls.AlertError(48), x509.UnknownAuthorityError{}} {
		if alert := link.Alert(err); alert != 0 {
			t.Errorf("%v: %v", err, alert)
		}
	}
}
