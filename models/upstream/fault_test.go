package upstream

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// tlsRig serves a provider over TLS whose URL names host. ca are the certificates that it is
// held to; nil: the setup's.
func tlsRig(t *testing.T, host string, ca func(own []byte) link.Provider, roots bool) *rig {
	t.Helper()
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, chatAnswer) }))
	web.Config.ErrorLog = quiet
	t.Cleanup(web.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	p := ca(own)
	p.Endpoints, p.Key = map[models.Format]string{models.OpenAIChat: "https://" + host + "/"}, testKey
	p.First, p.Pause, p.Total = soon, soon, soon
	setup := link.Setup{Providers: map[string]link.Provider{"p": p}}
	if roots {
		setup.Roots = own
	}
	return startRig(t, setup, web.Listener.Addr().String())
}

// A provider's own authorities are believed in place of the host's.
func TestAProvidersOwnAuthority(t *testing.T) {
	t.Parallel()
	with := func(own []byte) link.Provider { return link.Provider{Roots: own} }
	other := func([]byte) link.Provider { return link.Provider{Roots: []byte("none")} }
	if a, d := tlsRig(t, "example.com", with, false).call(link.Call{Format: models.OpenAIChat}, "{}"); a.err != nil || d.Status != 200 || d.Fault != "" {
		t.Errorf("%+v, %+v", a, d)
	}
	if _, d := tlsRig(t, "example.com", other, true).call(link.Call{Format: models.OpenAIChat}, "{}"); d.Sent || d.Fault != link.FaultTLS || !strings.Contains(d.Detail, "unknown authority") {
		t.Errorf("%+v", d)
	}
}

// A fault says how far a call came. Its detail is for administrators; agents read Error.
func TestFaults(t *testing.T) {
	t.Parallel()
	none := func([]byte) link.Provider { return link.Provider{} }
	plain := newRig(t, func(http.ResponseWriter, *http.Request) {}, func(s *link.Setup) {
		p := s.Providers["p"]
		p.Endpoints = map[models.Format]string{models.OpenAIChat: "https://provider.test/"}
		s.Providers["p"] = p
	})
	slow := newRig(t, func(_ http.ResponseWriter, q *http.Request) { _, _ = io.Copy(io.Discard, q.Body); untilGone(q) }, func(s *link.Setup) {
		p := s.Providers["p"]
		p.First = 50 * time.Millisecond
		s.Providers["p"] = p
	})
	cut := newRig(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil)
	nobody := startRig(t, link.Setup{Providers: map[string]link.Provider{"p": {Endpoints: map[models.Format]string{models.OpenAIChat: "http://provider.test/"}, First: soon, Pause: soon, Total: soon}}}, "127.0.0.1:1")
	for name, row := range map[string]struct {
		rig    *rig
		fault  link.Fault
		detail string
	}{
		"nobody listens":      {nobody, link.FaultDial, "refused"},
		"another name":        {tlsRig(t, "provider.test", none, true), link.FaultTLS, "provider.test"},
		"no authority":        {tlsRig(t, "example.com", none, false), link.FaultTLS, "unknown authority"},
		"no TLS there":        {plain, link.FaultTLS, "HTTP"},
		"no answer":           {slow, link.FaultTime, ""},
		"the connection ends": {cut, link.FaultLost, ""},
	} {
		a, d := row.rig.call(link.Call{Format: models.OpenAIChat}, "{}")
		if a.err == nil || d.Status != 0 || d.Fault != row.fault || !strings.Contains(d.Detail, row.detail) || row.detail == "" && d.Detail != "" {
			t.Errorf("%s: %+v, %+v", name, a, d)
		}
		if d.Error == "" || row.detail != "" && strings.Contains(d.Error, row.detail) || strings.Contains(d.Detail+d.Error, testKey) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
