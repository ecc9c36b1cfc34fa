package format

import (
	"strconv"
	"strings"

	"clove.run/clove/models"
)

// Bounds of what a request names.
const (
	MaxOut     = 1 << 30 // tokens of output
	MaxAnswers = 128     // OpenAI's own limit
	maxModel   = 256     // bytes of a model's name
)

// Request is what a body asks for.
type Request struct {
	Format models.Format
	Model  string // as the agent names it
	Stream bool
	In     int64         // estimate of input tokens; see BytesPerToken
	Out    int64         // maximum of output tokens of each answer; 0: the request names none
	Least  int64         // least maximum that a provider takes for the request: above that of its reasoning; 0: any
	N      int64         // answers
	Needs  []models.Need // rights beside the model's, each once
	Tiers  []string      // what changes the price, as NAME=VALUE: service_tier=priority, ttl=1h
	Usage  bool          // a chat stream whose client asked for its usage

	// Granted is set by the caller before Body: the needs that the grant covers. With
	// provider-state, a request of OpenAI's responses that does not say store keeps the
	// provider's default, which is true.
	Granted []models.Need

	document *document
	limit    string // the field that names the maximum; "" for none
}

// Parse reads the body of a request. The error is a *Refusal.
func Parse(f models.Format, body []byte) (*Request, error) {
	t := tableOf(f)
	if t == nil {
		return nil, &Refusal{Cause: NotFound, Message: "unknown format " + string(f)}
	}
	if len(body) > MaxBody {
		return nil, &Refusal{Cause: TooLarge, Message: "the body has more than " + strconv.Itoa(MaxBody) + " bytes"}
	}
	d, err := parse(body)
	if err != nil {
		return nil, &Refusal{Cause: Invalid, Message: err.Error()}
	}
	if d.nodes[0].kind != object {
		return nil, &Refusal{Cause: Invalid, Message: "the body is not an object"}
	}
	c := &check{document: d, table: t}
	if bad := c.fields(); bad != nil {
		return nil, bad
	}
	r := &Request{Format: f, N: 1, In: c.estimate(), Needs: c.needs, Tiers: c.tiers, document: d}
	if bad := r.read(c); bad != nil {
		return nil, bad
	}
	return r, nil
}

// read takes the fields that control decides by.
func (r *Request) read(c *check) *Refusal {
	for _, step := range []func(*check) *Refusal{r.readModel, r.readStream, r.readAnswers, r.readLimit, r.readReasoning} {
		if bad := step(c); bad != nil {
			return bad
		}
	}
	return nil
}

func (r *Request) readModel(c *check) *Refusal {
	i, ok := c.member(0, "model")
	if !ok {
		return &Refusal{Cause: Invalid, Param: "model", Message: "model is missing"}
	}
	r.Model = c.str(i)
	printable := !strings.ContainsFunc(r.Model, func(b rune) bool { return b <= ' ' || b == 0x7f || b == '\ufffd' })
	if r.Model == "" || len(r.Model) > maxModel || !printable {
		return c.refuse(i, "not the name of a model")
	}
	return nil
}

func (r *Request) readStream(c *check) *Refusal {
	var bad *Refusal
	if r.Format != models.AnthropicCount {
		r.Stream, bad = c.flag(0, "stream")
	}
	if i, ok := c.member(0, "stream_options"); ok && bad == nil && r.Format == models.OpenAIChat && c.nodes[i].kind != null {
		if c.nodes[i].kind != object {
			return c.refuse(i, "not an object")
		}
		r.Usage, bad = c.flag(i, "include_usage")
		r.Usage = r.Usage && r.Stream
	}
	return bad
}

func (c *check) flag(parent int32, name string) (bool, *Refusal) {
	i, ok := c.member(parent, name)
	if !ok || c.nodes[i].kind == null {
		return false, nil
	}
	if c.nodes[i].kind != boolean {
		return false, c.refuse(i, "not true or false")
	}
	return !c.empty(i), nil
}

func (r *Request) readAnswers(c *check) *Refusal {
	if i, ok := c.member(0, "n"); ok && r.Format == models.OpenAIChat && c.nodes[i].kind != null {
		if r.N, ok = c.integer(i, 1, MaxAnswers); !ok {
			return c.refuse(i, "not a whole number from 1 to %d", MaxAnswers)
		}
	}
	return nil
}

// limits are the fields that name the maximum of output; the first is the one that Body
// writes.
func (r *Request) limits() []string {
	switch r.Format {
	case models.OpenAIChat:
		return []string{"max_completion_tokens", "max_tokens"}
	case models.OpenAIResponses:
		return []string{"max_output_tokens"}
	case models.AnthropicMessages:
		return []string{"max_tokens"}
	}
	return nil
}

func (r *Request) readLimit(c *check) *Refusal {
	least := int64(1) // some servers take 0 or -1 for no maximum
	if r.Format.Family() == models.Anthropic {
		least = 0 // fills the cache and answers nothing
	}
	for _, name := range r.limits() {
		i, ok := c.member(0, name)
		if !ok || c.nodes[i].kind == null {
			continue
		}
		if r.limit != "" {
			return c.refuse(i, "the request has %s, too", r.limit)
		}
		if r.Out, ok = c.integer(i, least, MaxOut); !ok {
			return c.refuse(i, "not a whole number from %d to %d", least, MaxOut)
		}
		r.limit = name
	}
	return nil
}

// readReasoning takes the maximum of Anthropic's reasoning, which that of the output must exceed.
// One that is no number is the provider's to refuse.
func (r *Request) readReasoning(c *check) *Refusal {
	i, ok := c.member(0, "thinking")
	if !ok || r.Format != models.AnthropicMessages || c.nodes[i].kind != object {
		return nil
	}
	if i, ok = c.member(i, "budget_tokens"); ok {
		if n, is := c.integer(i, 1, MaxOut); is {
			r.Least = n + 1
		}
	}
	return nil
}

func (c *check) integer(i int32, least, most int64) (int64, bool) {
	if c.nodes[i].kind != number {
		return 0, false
	}
	n, err := strconv.ParseInt(string(c.raw(i)), 10, 64)
	return n, err == nil && n >= least && n <= most
}
