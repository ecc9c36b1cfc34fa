package usage

import (
	"math"
	"strconv"

	"clove.run/clove/models"
)

// MaxTokens is the highest figure that is believed for one call.
const MaxTokens = 1_000_000_000

// figure is one number of a report.
type figure int

const (
	in figure = iota // OpenAI's include what was cached, Anthropic's do not
	out
	total
	cached
	written
	hour
	reasoning
	searches
	figures
)

// report is a usage object, or what was reported altogether. A figure that is missing is -1.
type report [figures]int64

func noReport() report {
	var r report
	for i := range r {
		r[i] = -1
	}
	return r
}

// names are where each figure stands below usage, in all formats.
var names = map[string]figure{
	"prompt_tokens":                              in,
	"completion_tokens":                          out,
	"total_tokens":                               total,
	"prompt_tokens_details.cached_tokens":        cached,
	"prompt_cache_hit_tokens":                    cached,
	"prompt_tokens_details.cache_write_tokens":   written,
	"completion_tokens_details.reasoning_tokens": reasoning,

	"input_tokens":                            in,
	"output_tokens":                           out,
	"input_tokens_details.cached_tokens":      cached,
	"input_tokens_details.cache_write_tokens": written,
	"output_tokens_details.reasoning_tokens":  reasoning,

	"cache_read_input_tokens":                  cached,
	"cache_creation_input_tokens":              written,
	"cache_creation.ephemeral_1h_input_tokens": hour,
	"output_tokens_details.thinking_tokens":    reasoning,
	"server_tool_use.web_search_requests":      searches,
}

// read returns a number as a figure, within 0 and MaxTokens.
func read(literal []byte) (int64, Fault) {
	f, err := strconv.ParseFloat(string(literal), 64)
	switch {
	case math.IsNaN(f) || err != nil && !math.IsInf(f, 0):
		return 0, Malformed
	case f < 0:
		return 0, Negative
	case f > MaxTokens:
		return MaxTokens, Huge
	}
	return int64(math.Ceil(f)), ""
}

// merge takes the higher of each figure, as reports in a stream are cumulative. It reports
// whether one has shrunk.
func (r *report) merge(next report) (shrunk bool) {
	for i := range r {
		shrunk = shrunk || next[i] >= 0 && next[i] < r[i]
		r[i] = max(r[i], next[i])
	}
	return shrunk
}

// add sums the reports of several parts of one call.
func (r *report) add(part report) {
	for i := range r {
		if part[i] >= 0 {
			r[i] = min(max(r[i], 0)+part[i], MaxTokens)
		}
	}
}

// usage turns a report into what it means. It reports whether its figures agree.
func (r report) usage(family models.Family) (u models.Usage, agrees bool) {
	for i := range r {
		r[i] = max(r[i], 0)
	}
	agrees = r[reasoning] <= max(r[out], r[total]-r[in])
	u = models.Usage{In: r[in], Cached: r[cached], CacheWrite: r[written], Out: r[out]}
	if family == models.OpenAI {
		agrees = agrees && r[cached]+r[written] <= r[in] && (r[total] == 0 || r[total] >= r[in]+r[out])
		// Some servers leave reasoning out of completion_tokens, and only the total has it.
		u.Out = max(u.Out, r[total]-r[in])
		u.Cached = min(u.Cached, u.In)
		u.CacheWrite = min(u.CacheWrite, u.In-u.Cached)
		u.In -= u.Cached + u.CacheWrite
	}
	u.CacheWriteLong = min(r[hour], u.CacheWrite)
	u.Reasoning = min(r[reasoning], u.Out)
	return u, agrees
}
