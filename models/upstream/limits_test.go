package upstream

import (
	"io"
	"net/http"
	"testing"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestLimitsOfProviders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		header http.Header
		want   link.Limits
	}{
		"none":                {nil, link.Limits{}},
		"OpenAI's":            {headers("x-ratelimit-limit-requests", "500", "x-ratelimit-limit-tokens", "30000", "x-ratelimit-remaining-requests", "1"), link.Limits{Requests: 500, Tokens: 30000}},
		"Anthropic's":         {headers("anthropic-ratelimit-requests-limit", "50", "anthropic-ratelimit-tokens-limit", "40000", "anthropic-ratelimit-input-tokens-limit", "1"), link.Limits{Requests: 50, Tokens: 40000}},
		"of the input":        {headers("anthropic-ratelimit-input-tokens-limit", "20000"), link.Limits{Tokens: 20000}},
		"none are allowed":    {headers("x-ratelimit-limit-requests", "0", "x-ratelimit-limit-tokens", "-5"), link.Limits{}},
		"no numbers":          {headers("x-ratelimit-limit-requests", "5, 6", "x-ratelimit-limit-tokens", "1e3"), link.Limits{}},
		"more than there are": {headers("x-ratelimit-limit-tokens", "9223372036854775807"), link.Limits{}},
		"the next is used":    {headers("x-ratelimit-limit-tokens", "x", "anthropic-ratelimit-tokens-limit", "7"), link.Limits{Tokens: 7}},
	} {
		if got := limits(row.header); got != row.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		header http.Header
		want   string
	}{
		"none":         {nil, ""},
		"seconds":      {headers("Retry-After", "7"), "7"},
		"none to wait": {headers("Retry-After", "0"), "0"},
		"a part":       {headers("Retry-After", "1.2"), "2"},
		"milliseconds": {headers("Retry-After-Ms", "1500", "Retry-After", "9"), "2"},
		"a date":       {headers("Retry-After", "Mon, 23 Nov 2026 10:00:30 GMT"), "30"},
		"a past date":  {headers("Retry-After", "Mon, 23 Nov 2026 09:00:30 GMT"), "0"},
		"a far date":   {headers("Retry-After", "Tue, 24 Nov 2026 10:00:30 GMT"), ""},
		"too long":     {headers("Retry-After", "3601"), ""},
		"negative":     {headers("Retry-After", "-1"), ""},
		"no number":    {headers("Retry-After", "NaN"), ""},
		"endless":      {headers("Retry-After-Ms", "+Inf"), ""},
		"a line":       {headers("Retry-After", "7\r\nX: y"), ""},
	} {
		if got := retryAfter(row.header, now); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestLimitsAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit-Requests", "60")
		io.WriteString(w, chatAnswer)
	}, nil)
	if _, d := r.call(link.Call{Format: models.OpenAIChat}, "{}"); d.Limits != (link.Limits{Requests: 60}) {
		t.Errorf("%+v", d)
	}
}
