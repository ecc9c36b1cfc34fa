package upstream

import (
	"mime"
	"net/http"

	"clove.run/clove/models/link"
	"clove.run/clove/secrets/redact"
)

// newRedactor takes a provider's key out of one answer.
func newRedactor(key *redact.Secret) *redact.Redactor {
	return key.NewRedactor(redact.Options{Instead: "[key]", Most: link.MaxKey})
}

// contentType passes only types that a format has.
func contentType(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if kind == "text/event-stream" {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// requestID passes a provider's id of a request, for people who ask the provider.
func requestID(h http.Header, key *redact.Secret) string {
	for _, name := range []string{"X-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" && len(id) <= 128 && printable(id) && len(key.Find([]byte(id))) == 0 {
			return id
		}
	}
	return ""
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}
