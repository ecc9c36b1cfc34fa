package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// A subscription's provider gets the token as a bearer token, what clove adds, and of the headers
// that it is given those of its client's row. Another provider gets none of them.
func TestHeadersOfASubscription(t *testing.T) {
	t.Parallel()
	given := map[string]string{"User-Agent": "client/1 (x)", "X-App": "cli", "Originator": "codex_exec", "Session-Id": "s-1", "X-Mine": "mine", "Authorization": "Bearer mine", "X-Api-Key": "mine",
		"Content-Type": "text/html", "Chatgpt-Account-Id": "mine", "Anthropic-Beta": "mine", "Thread-Id": "a\r\nX-Mine: b"}
	for _, row := range []struct {
		subscription string
		format       models.Format
		want         string // without what each request has
	}{
		{"claude-code", models.AnthropicMessages, "Anthropic-Beta=effort-2025-11-24,oauth-2025-04-20 Anthropic-Version=2023-06-01 Authorization=Bearer " + testKey + " User-Agent=client/1 (x) X-App=cli"},
		{"codex", models.OpenAIResponses, "Authorization=Bearer " + testKey + " Chatgpt-Account-Id=acc-1 Originator=codex_exec Session-Id=s-1 User-Agent=client/1 (x)"},
		{"", models.AnthropicMessages, "Anthropic-Beta=effort-2025-11-24 Anthropic-Version=2023-06-01 User-Agent=clove X-Api-Key=" + testKey},
		{"", models.OpenAIResponses, "Authorization=Bearer " + testKey + " User-Agent=clove"},
	} {
		seen := make(chan http.Header, 1)
		r := newRig(t, func(w http.ResponseWriter, q *http.Request) { seen <- q.Header }, func(s *link.Setup) {
			p := s.Providers["p"]
			p.Subscription, p.Account = row.subscription, "acc-1"
			s.Providers["p"] = p
		})
		betas := []string{"effort-2025-11-24"}
		if a, _ := r.call(link.Call{Format: row.format, Betas: betas, Headers: given}, "{}"); a.err != nil {
			t.Fatalf("%s: %+v", row.subscription, a)
		}
		h := <-seen
		if h.Get("Content-Type") != "application/json" || h.Get("Accept-Encoding") != "identity" {
			t.Errorf("%v", h)
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(h)) {
			if name != "Content-Type" && name != "Accept-Encoding" && name != "Content-Length" {
				got = append(got, name+"="+strings.Join(h[name], ";"))
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %s, want %s", row.subscription, got, row.want)
		}
	}
}
