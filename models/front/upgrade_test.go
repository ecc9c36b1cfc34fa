package front

import (
	"os"
	"strings"
	"testing"

	"clove.run/clove/models/link"
)

// A client that tries WebSockets first learns at once that there are none. A call whose client
// offers another version of HTTP is made as it is.
func TestWebSocketsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.decide = func(b link.Begin) link.ToFront { return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs"}} }
		r.provide = func(_ *os.File, out link.Answer) {
			_ = out.Head(link.Head{Status: 200, Type: "application/json"})
			_ = out.End(link.End{})
		}
	})
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "WebSocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	if a := r.ask("GET", "/v1/responses", "", upgrade...); a.status != 426 || a.header.Get("Upgrade") != "HTTP/1.1" || a.header.Get("X-Should-Retry") != "false" || !strings.Contains(a.text, "upgrade_required") {
		t.Errorf("%+v", a)
	}
	if a := r.ask("GET", "/v1/models", "", upgrade...); a.status == 426 {
		t.Errorf("%+v", a)
	}
	if a := r.ask("POST", "/v1/chat/completions", chat(""), "Connection", "Upgrade", "Upgrade", "h2c"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}
