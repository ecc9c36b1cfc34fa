package upstream

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"clove.run/clove/models/link"
)

// maxAfter bounds what a provider may have clients wait for, in seconds.
const maxAfter = 3600

// retryAfter is the time until a repetition may succeed, in whole seconds; empty: the provider
// names none, or one that is out of bounds. OpenAI's servers write milliseconds in a header of
// their own, and RFC 9110 allows a date.
func retryAfter(h http.Header, now time.Time) string {
	after := math.NaN()
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		after = ms / 1000
	} else if seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		after = seconds
	} else if date, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		after = max(0, date.Sub(now).Seconds())
	}
	if !(after >= 0 && after <= maxAfter) { // also what is not a number
		return ""
	}
	return strconv.Itoa(int(math.Ceil(after)))
}

// The headers in which providers name their limits. OpenAI's requests may be those of a day,
// which bounds less than those of a minute would.
var (
	requestLimits = []string{"X-Ratelimit-Limit-Requests", "Anthropic-Ratelimit-Requests-Limit"}
	tokenLimits   = []string{"X-Ratelimit-Limit-Tokens", "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Limit"}
)

// limits reads the limits that an answer names.
func limits(h http.Header) link.Limits {
	return link.Limits{Requests: limit(h, requestLimits), Tokens: limit(h, tokenLimits)}
}

// maxLimit is above every provider's: what is higher bounds nothing.
const maxLimit = 1 << 40

// limit is the first of the headers that is a limit.
func limit(h http.Header, names []string) int64 {
	for _, name := range names {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n > 0 && n <= maxLimit {
			return n
		}
	}
	return 0
}
