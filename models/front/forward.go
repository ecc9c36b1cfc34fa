package front

import (
	"errors"
	"net/http"
	"strings"

	"clove.run/clove/models"
	"clove.run/clove/models/format"
	"clove.run/clove/models/link"
)

// forward has control decide on a request, sends it to clove-upstream, and passes the
// fromControl on as it comes. Where a target fails before the first byte of its answer, control may
// name another; the client gets one answer.
func (h *handler) forward(w http.ResponseWriter, r *http.Request, request *format.Request) {
	ctx := r.Context()
	a, q, err := h.server.ask(ctx, func(n uint64) link.FromFront {
		return link.FromFront{Begin: &link.Begin{Number: n, Run: h.run, Format: request.Format, Model: request.Model, Stream: request.Stream,
			In: request.In, Out: request.Out, Least: request.Least, N: request.N, Needs: request.Needs, Tiers: tiers(request), Betas: betas(r, request), Trace: traceparent(r),
			Headers: models.PassedHeaders(request.Format, r.Header.Values)}}
	})
	if err != nil {
		return // the client is gone
	}
	defer q.end()
	if a.message.Go == nil {
		refuse(w, request.Format, a.message.Refuse)
		return
	}
	defer q.cancel()
	for {
		t := begin(ctx, request, a)
		if a.last() || !t.failed() {
			t.pass(w, request)
			return
		}
		t.hold()
		if a, err = q.await(ctx); err != nil {
			return // the client is gone
		}
		if a.message.Go == nil { // the last failure stands
			t.pass(w, request)
			return
		}
	}
}

// tiers are those of a request that are asked for by a word. Another text is an unknown tier,
// as the provider may know it.
func tiers(request *format.Request) []string {
	var words []string
	for _, t := range request.Tiers {
		name, value, _ := strings.Cut(t, "=")
		if name == "ttl" { // each part of a prompt may have one, and the reservation has the highest rate for all
			continue
		}
		if !link.IsWord(value) {
			value = "other"
		}
		words = append(words, name+"="+value)
	}
	return words
}

// betas are those of Anthropic's beta headers that may be sent.
func betas(r *http.Request, request *format.Request) []string {
	if request.Format.Family() != models.Anthropic {
		return nil
	}
	return format.Betas(strings.Join(r.Header.Values("Anthropic-Beta"), ","))
}

// traceparent names the client's own span; empty: it sends none that is one.
func traceparent(r *http.Request) string {
	if text := r.Header.Get("Traceparent"); link.IsTraceparent(text) {
		return text
	}
	return ""
}

// failed is for what went wrong on the way to the provider.
func failed(err error) *link.Refuse {
	return &link.Refuse{Reason: link.ReasonFailed, Message: err.Error()}
}

// output writes an answer to a client, each part at once.
type output struct {
	w      http.ResponseWriter
	filter *format.StreamFilter // nil: everything passes
	stream bool
}

func outputOf(w http.ResponseWriter, request *format.Request, head link.Head) *output {
	o := &output{w: w, stream: request.Stream && head.Status == http.StatusOK}
	if o.stream {
		o.filter = format.NewStreamFilter(request)
	}
	return o
}

func (o *output) write(part []byte) error {
	if o.filter != nil {
		part = o.filter.Filter(part)
	}
	if len(part) == 0 {
		return nil
	}
	if _, err := o.w.Write(part); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// end writes what the filter still holds.
func (o *output) end() {
	if o.filter != nil {
		o.w.Write(o.filter.Rest())
	}
}

// abort ends an answer that is not whole. A stream gets the error in the client's own form;
// any other answer breaks off, so that its client does not take it for whole.
func (o *output) abort(request *format.Request, err error) {
	if !o.stream {
		panic(http.ErrAbortHandler)
	}
	o.w.Write(format.FailureEvent(request.Format, refusalOf(failed(err))))
	if errors.Is(err, link.ErrBroken) {
		_ = http.NewResponseController(o.w).Flush() // what is not flushed is lost with the connection
		panic(http.ErrAbortHandler)
	}
}

// causes are how each reason looks to clients.
var causes = map[link.Reason]format.Cause{
	link.ReasonUnknown:    format.UnknownModel,
	link.ReasonNotGranted: format.NotGranted,
	link.ReasonNeed:       format.NotGranted,
	link.ReasonBudget:     format.BudgetSpent,
	link.ReasonContext:    format.ContextLength,
	link.ReasonNoPrice:    format.NotGranted,
	link.ReasonBusy:       format.Overloaded,
	link.ReasonFailed:     format.Unavailable,
}

func refusalOf(r *link.Refuse) format.Refusal {
	return format.Refusal{Cause: causes[r.Reason], Message: r.Message, Hint: r.Hint}
}

// refuse answers that control refused a call.
func refuse(w http.ResponseWriter, f models.Format, r *link.Refuse) {
	if r == nil {
		r = &link.Refuse{Reason: link.ReasonFailed, Message: "there is no answer"}
	}
	fail(w, f, refusalOf(r), r.After)
}
