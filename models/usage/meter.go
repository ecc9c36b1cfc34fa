package usage

import (
	"bytes"
	"slices"
	"strings"

	"clove.run/clove/models"
)

// BytesPerToken is how many bytes of text count as one token where nothing is reported.
const BytesPerToken = 3

// Fault is something about an answer that an honest provider does not do.
type Fault string

// The faults.
const (
	Negative      Fault = "negative"      // a figure below 0
	Huge          Fault = "huge"          // a figure above MaxTokens
	Shrinking     Fault = "shrinking"     // a cumulative figure became lower
	Contradictory Fault = "contradictory" // a part is larger than its whole
	Malformed     Fault = "malformed"     // not JSON, or deeper than it is read
	Failed        Fault = "failed"        // an error in an answer or a stream; see Result.Error
)

// Result is what one answer says of itself.
type Result struct {
	Usage    models.Usage `json:"usage"`
	Searches int64        `json:"searches,omitempty"` // searches of the web by the provider, which cost by piece
	Model    string       `json:"model,omitempty"`    // as the provider names it
	Tiers    []string     `json:"tiers,omitempty"`    // what changes the price, as NAME=VALUE: service_tier=priority
	Reported bool         `json:"reported"`           // Usage is what the provider reported, until now; else it is zero
	Complete bool         `json:"complete"`           // the answer ended as it should
	Streamed int64        `json:"streamed"`           // estimate of the output by the text that came, at BytesPerToken, rounded up; without reasoning that is not sent
	Stop     string       `json:"stop,omitempty"`     // why the model stopped, in the provider's word
	Error    string       `json:"error,omitempty"`    // code or type of the provider's error
	Faults   []Fault      `json:"faults,omitempty"`
}

// Charge returns what to settle for a call whose input was estimated: what was reported; in
// an answer that broke off, no less output than came; without a report the estimates.
// Counting tokens is free.
func (r Result) Charge(f models.Format, estimate int64) models.Usage {
	u := r.Usage
	if f == models.AnthropicCount {
		return models.Usage{}
	}
	if !r.Reported {
		u.In = estimate
	}
	if !r.Reported || !r.Complete {
		u.Out = max(u.Out, r.Streamed)
	}
	return u
}

// Meter reads an answer. It has a fixed size.
type Meter struct {
	format   models.Format
	stream   bool
	lines    lines
	scanner  scanner
	part     report // the usage object that is being read
	entry    report // the entry of its iterations that is being read
	parts    report // the sum of its iterations
	whole    report // of the call
	reported bool
	complete bool
	kind     string // the type of the event that is being read
	result   Result
}

// New returns the meter of an answer in a format, which is a stream of events or one JSON
// document.
func New(f models.Format, stream bool) *Meter {
	m := &Meter{format: f, stream: stream, whole: noReport()}
	m.scanner.to = m
	return m
}

// Write takes the next bytes of the answer. It returns all of them and no error.
func (m *Meter) Write(p []byte) (int, error) {
	if m.stream {
		m.lines.feed(p, m)
	} else {
		m.scanner.feed(p)
	}
	return len(p), nil
}

// WriteUpTo is Write, up to the byte with which Streamed is more than so many tokens. It returns
// how many bytes it took. Streamed is one more than that at most.
func (m *Meter) WriteUpTo(p []byte, tokens int64) (n int) {
	for n < len(p) && m.Streamed() <= tokens {
		fits := tokens*BytesPerToken - m.scanner.text + 1 // a byte of an answer is no more than one of text
		next, _ := m.Write(p[n:][:min(int64(len(p)-n), fits)])
		n += next
	}
	return n
}

// Streamed is Result.Streamed until now.
func (m *Meter) Streamed() int64 { return (m.scanner.text + BytesPerToken - 1) / BytesPerToken }

// Result returns what was read until now.
func (m *Meter) Result() Result {
	r := m.result
	r.Tiers, r.Faults = slices.Clone(r.Tiers), slices.Clone(r.Faults)
	r.Streamed, r.Reported, r.Complete = m.Streamed(), m.reported, m.complete
	if !m.stream {
		r.Complete = m.scanner.step == ended && r.Error == ""
		if m.scanner.step == broken {
			r.fault(Malformed)
		}
	}
	r.Searches = max(m.whole[searches], 0)
	if !m.reported || m.format == models.AnthropicCount {
		return r // counting is free
	}
	var agrees bool
	r.Usage, agrees = m.whole.usage(m.format.Family())
	if !agrees || r.Complete && r.Usage.Out == 0 && r.Streamed > 0 {
		r.fault(Contradictory)
	}
	return r
}

func (r *Result) fault(f Fault) {
	if f != "" && !slices.Contains(r.Faults, f) {
		r.Faults = append(r.Faults, f)
	}
}

// event is called at the end of each event with data.
func (m *Meter) event(done bool) {
	switch whole := m.scanner.step == ended; {
	case done:
		m.complete = m.complete || m.format == models.OpenAIChat
	case whole && slices.Contains(endings[m.format], m.kind):
		m.complete = true
	case !whole && m.scanner.began():
		m.result.fault(Malformed)
	}
	m.kind = ""
	m.scanner.reset()
}

// endings are the events with which a stream ends as it should.
var endings = map[models.Format][]string{
	models.OpenAIResponses:   {"response.completed", "response.incomplete"},
	models.AnthropicMessages: {"message_stop"},
}

// enter implements handler.
func (m *Meter) enter(path []byte) {
	switch string(inner(path)) {
	case "usage":
		m.part, m.parts = noReport(), noReport()
	case "usage.iterations.[]":
		m.entry = noReport()
	case "error":
		m.failed("")
	}
}

// leave implements handler.
func (m *Meter) leave(path []byte) {
	switch string(inner(path)) {
	case "usage.iterations.[]":
		m.parts.add(m.entry)
	case "usage":
		m.part.merge(m.parts)
		m.reported = m.reported || max(m.part[in], m.part[out], m.part[total]) >= 0
		if m.whole.merge(m.part) {
			m.result.fault(Shrinking)
		}
	}
}

// inner takes off the object in which a stream's events have the answer: response for
// OpenAI's, message for Anthropic's.
func inner(path []byte) []byte {
	for _, prefix := range []string{"response.", "message."} {
		if rest, ok := bytes.CutPrefix(path, []byte(prefix)); ok {
			return rest
		}
	}
	return path
}

// value implements handler.
func (m *Meter) value(path, literal []byte, str bool) {
	if m.stream && str && string(path) == "type" {
		if m.kind = safe(literal); m.kind == "error" {
			m.failed("")
		}
		return
	}
	path = inner(path)
	if rest, ok := bytes.CutPrefix(path, []byte("usage.")); ok && !str {
		m.figure(rest, literal)
		return
	}
	if m.format == models.AnthropicCount && string(path) == "input_tokens" && !str {
		m.reported = true
	}
	if str {
		m.word(string(path), literal)
	}
}

func (m *Meter) figure(path, literal []byte) {
	to := &m.part
	if rest, ok := bytes.CutPrefix(path, []byte("iterations.[].")); ok {
		path, to = rest, &m.entry
	}
	at, ok := names[string(path)]
	if !ok || string(literal) == "null" {
		return
	}
	n, fault := read(literal)
	m.result.fault(fault)
	to[at] = max(to[at], n)
}

// word takes a string that is not text of the model's.
func (m *Meter) word(path string, literal []byte) {
	switch path {
	case "model":
		m.result.Model = safe(literal)
	case "service_tier", "usage.service_tier", "usage.speed", "usage.inference_geo":
		m.tier(strings.TrimPrefix(path, "usage."), safe(literal))
	case "choices.[].finish_reason", "stop_reason", "delta.stop_reason", "incomplete_details.reason":
		m.result.Stop = safe(literal)
	case "status":
		if status := safe(literal); m.result.Stop == "" && status != "in_progress" && status != "queued" {
			m.result.Stop = status
		}
	case "error", "error.type", "error.code":
		m.failed(safe(literal))
	case "code":
		if m.kind == "error" {
			m.failed(safe(literal))
		}
	}
}

// tier notes what changes the price. There are three names. The last value of each holds:
// streams begin with the tier that was asked for, and end with the one that was given.
func (m *Meter) tier(name, value string) {
	t := name + "=" + value
	if i := slices.IndexFunc(m.result.Tiers, func(old string) bool { return strings.HasPrefix(old, name+"=") }); i >= 0 {
		m.result.Tiers[i] = t
		return
	}
	m.result.Tiers = append(m.result.Tiers, t)
}

// failed notes an error. OpenAI's code says more than its type, and comes later.
func (m *Meter) failed(why string) {
	m.result.fault(Failed)
	switch {
	case why != "":
		m.result.Error = why
	case m.result.Error == "":
		m.result.Error = "error"
	}
}

// safe returns a provider's word for logs and records: short and without surprises.
func safe(literal []byte) string {
	const most = 80
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '"' && r != '\\' {
			return r
		}
		return '?'
	}, string(literal[:min(len(literal), most)]))
}
