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

// Missing is what a report does not say. Charge estimates it.
type Missing string

// The figures that may be missing.
const (
	Input  Missing = "input"
	Output Missing = "output"
	Split  Missing = "split" // there is only a total, which Usage.Out has
)

// Result is what one answer says of itself.
type Result struct {
	Usage    models.Usage `json:"usage"`
	Searches int64        `json:"searches,omitempty"` // searches of the web by the provider, which cost by piece
	Model    string       `json:"model,omitempty"`    // as the provider names it
	Tiers    []string     `json:"tiers,omitempty"`    // what changes the price, as NAME=VALUE: service_tier=priority
	Reported bool         `json:"reported"`           // Usage is what the provider reported, until now; else it is zero
	Lacks    Missing      `json:"lacks,omitempty"`
	Complete bool         `json:"complete"`        // the answer ended as it should
	Streamed int64        `json:"streamed"`        // estimate of the output by the text that came, at BytesPerToken, rounded up; without reasoning that is not sent
	Stop     string       `json:"stop,omitempty"`  // why the model stopped, in the provider's word
	Error    string       `json:"error,omitempty"` // code or type of the provider's error
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
	switch {
	case !r.Reported || r.Lacks == Input:
		u.In = estimate
	case r.Lacks == Split:
		u.In = min(estimate, max(u.Out-r.Streamed, 0))
		u.Out -= u.In
	}
	if !r.Reported || !r.Complete || r.Lacks == Output {
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
	entry    report // the entry of Anthropic's iterations that is being read
	parts    report // the sum of its iterations
	accounts [len(forms)]account
	reported bool
	complete bool
	kind     string // the type of the event that is being read
	result   Result
}

// New returns the meter of an answer in a format, which is a stream of events or one JSON
// document.
func New(f models.Format, stream bool) *Meter {
	m := &Meter{format: f, stream: stream, entry: noReport(), parts: noReport()}
	for i := range m.accounts {
		m.accounts[i] = account{noReport(), noReport()}
	}
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
	whole := m.whole()
	r.Searches = max(whole[searches], 0)
	if !m.reported || m.format == models.AnthropicCount {
		return r // counting is free
	}
	var agrees bool
	r.Usage, agrees = whole.usage()
	r.Lacks = lacks(whole)
	if !agrees || r.Complete && r.Usage.Out == 0 && r.Streamed > 0 {
		r.fault(Contradictory)
	}
	return r
}

// whole is what all forms together report.
func (m *Meter) whole() report {
	all := noReport()
	for i := range forms {
		all.merge(m.accounts[i].whole.normal(forms[i].apart))
	}
	return all
}

// lacks names the figure that a report needs and does not have.
func lacks(r report) Missing {
	switch {
	case r[in] < 0 && r[total] >= 0:
		return Split
	case r[in] < 0:
		return Input
	case r[out] < 0 && r[total] < 0:
		return Output
	}
	return ""
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
	case "usage.iterations.[]":
		m.entry = noReport()
	case "error":
		m.failed("")
	}
}

// leave implements handler.
func (m *Meter) leave(path []byte) {
	if string(inner(path)) == "usage.iterations.[]" {
		m.parts.add(m.entry)
		return
	}
	for i := range forms {
		if rest, ok := m.below(i, path); ok && len(rest) == 0 {
			m.take(&m.accounts[i])
		}
	}
}

// take adds an object that has been read to what its form has reported.
func (m *Meter) take(a *account) {
	if m.format.Family() == models.Anthropic {
		a.part.merge(m.parts)
		m.parts = noReport()
	}
	m.reported = m.reported || max(a.part[in], a.part[out], a.part[total]) >= 0
	if a.whole.merge(a.part) {
		m.result.fault(Shrinking)
	}
	a.part = noReport()
}

// below returns the rest of a path below the object of a form. A form's own path comes before
// the same path inside of an event's answer.
func (m *Meter) below(i int, path []byte) ([]byte, bool) {
	if rest, ok := forms[i].below(path, m.format.Family()); ok && forms[i].at[0] != "" {
		return rest, true
	}
	return forms[i].below(inner(path), m.format.Family())
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
	if !str {
		m.number(path, literal)
	}
	path = inner(path)
	if m.format == models.AnthropicCount && string(path) == "input_tokens" && !str {
		m.reported = true
	}
	if str {
		m.word(string(path), literal)
	}
}

// number takes a value as the figure that it is in each form.
func (m *Meter) number(path, literal []byte) {
	for i := range forms {
		rest, ok := m.below(i, path)
		if !ok {
			continue
		}
		to := &m.accounts[i].part
		if entry, ok := bytes.CutPrefix(rest, []byte("iterations.[].")); ok && forms[i].family == models.Anthropic {
			rest, to = entry, &m.entry
		}
		at, ok := forms[i].figures[string(rest)]
		if !ok || string(literal) == "null" {
			continue
		}
		n, fault := read(literal)
		m.result.fault(fault)
		to[at] = max(to[at], n)
	}
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
