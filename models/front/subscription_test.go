package front

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"clove.run/clove/models/link"
)

// The headers of a client that may pass are named to control, and no others.
func TestHeadersAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.ask("POST", "/v1/messages", fmt.Sprintf(messages, ""), "User-Agent", "claude-cli/2.1.330 (external, sdk-cli)", "X-App", "c l i", "X-Claude-Code-Session-Id", "1-2",
		"X-Mine", "mine", "Authorization", "Bearer mine", "X-Api-Key", "mine", "Cookie", "mine", "Session-Id", "3")
	if b := within(t, r.begun); fmt.Sprint(b.Headers) != "map[User-Agent:claude-cli/2.1.330 (external, sdk-cli) X-Claude-Code-Session-Id:1-2]" {
		t.Errorf("%v", b.Headers)
	}
	r.ask("POST", "/v1/chat/completions", chat(""), "User-Agent", "codex", "Originator", "codex_exec")
	if b := within(t, r.begun); len(b.Headers) != 0 {
		t.Errorf("%v", b.Headers)
	}
}

// A token that the provider does not accept is said in clove's words, and once. Another error of
// the provider passes, as does 401 where the key is no subscription's.
func TestATokenThatIsNotAccepted(t *testing.T) {
	t.Parallel()
	const provider = `{"error":{"message":"please log in"}}`
	for _, row := range []struct {
		path, body, renew string
		from, status      int
		words             string
	}{
		{"/v1/messages", fmt.Sprintf(messages, ""), "write a new one", 401, 401, `"type":"authentication_error","message":"the provider does not accept the token of its subscription (write a new one)"`},
		{"/v1/responses", `{"model":"small","input":"Hello"}`, "write a new one", 401, 400, "the token of its subscription (write a new one)"},
		{"/v1/messages", fmt.Sprintf(messages, ""), "write a new one", 403, 403, provider},
		{"/v1/messages", fmt.Sprintf(messages, ""), "", 401, 401, provider},
	} {
		r := newRig(t, func(r *rig) {
			r.decide = func(b link.Begin) link.ToFront {
				return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Renew: row.renew}}
			}
			r.provide = func(_ *os.File, out link.Answer) {
				_ = out.Head(link.Head{Status: row.from, Type: "application/json"})
				_, _ = out.Write([]byte(provider))
				_ = out.End(link.End{})
			}
		})
		a := r.ask("POST", row.path, row.body)
		if a.status != row.status || !strings.Contains(a.text, row.words) || row.renew != "" && row.from == 401 && (strings.Contains(a.text, "log in") || a.header.Get("X-Should-Retry") != "false") {
			t.Errorf("%s: %+v", row.path, a)
		}
	}
}
