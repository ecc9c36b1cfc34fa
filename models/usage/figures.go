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
	in figure = iota
	out
	moreIn // input that in leaves out
	more   // reasoning that out leaves out
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

// usage turns a normal report into what it means. It reports whether its figures agree.
func (r report) usage() (u models.Usage, agrees bool) {
	for i := range r {
		r[i] = max(r[i], 0)
	}
	agrees = r[reasoning] <= max(r[out], r[total]-r[in]) && r[cached]+r[written] <= r[in] && (r[total] == 0 || r[total] >= r[in]+r[out])
	// Some servers leave reasoning out of completion_tokens, and only the total has it.
	u = models.Usage{In: r[in], Cached: min(r[cached], r[in]), Out: max(r[out], r[total]-r[in])}
	u.CacheWrite = min(r[written], u.In-u.Cached)
	u.In -= u.Cached + u.CacheWrite
	u.CacheWriteLong = min(r[hour], u.CacheWrite)
	u.Reasoning = min(r[reasoning], u.Out)
	return u, agrees
}
