package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The provider's models.
const (
	modelSteady = "bench-steady" // answers at a fixed pace
	modelSwift  = "bench-swift"  // answers without a delay
	modelHeld   = "bench-held"   // leaves its streams open behind the first token
)

// pace is how a model answers.
type pace struct {
	first, between time.Duration
	tokens         int
	open           bool // a stream ends when its client goes away
}

var paces = map[string]pace{
	modelSteady: {first: 10 * time.Millisecond, between: 2 * time.Millisecond, tokens: 10},
	modelSwift:  {tokens: 200},
	modelHeld:   {tokens: 1, open: true},
}

// question is what the provider reads of a request.
type question struct {
	Model         string
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// answerModel is a provider of OpenAI's chat completions. It is in this process, which waits
// for reports while it is asked.
func answerModel(w http.ResponseWriter, r *http.Request) {
	var q question
	err := json.NewDecoder(r.Body).Decode(&q)
	p, found := paces[q.Model]
	switch {
	case err != nil || !found:
		http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
	case q.Stream:
		p.stream(w, r, q, time.Now())
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":"%s","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"an answer"}}],"usage":%s}`, q.Model, usageOf(p.tokens))
	}
}

func usageOf(tokens int) string {
	return fmt.Sprintf(`{"prompt_tokens":1000,"completion_tokens":%d,"total_tokens":%d}`, tokens, 1000+tokens)
}

// stream sends each token as an event. The first one says how many microseconds of the wait
// for it were the provider's, so that its timer is not in the measurement.
func (p pace) stream(w http.ResponseWriter, r *http.Request, q question, began time.Time) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	time.Sleep(p.first)
	text := strconv.FormatInt(time.Since(began).Microseconds(), 10)
	for i := range p.tokens {
		if i > 0 {
			time.Sleep(p.between)
			text = "token "
		}
		fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"%s","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`+"\n\n", q.Model, text)
		if out.Flush() != nil {
			return
		}
	}
	if p.open {
		<-r.Context().Done()
		return
	}
	fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"%s","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n", q.Model)
	if q.StreamOptions.IncludeUsage {
		fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"%s","choices":[],"usage":%s}`+"\n\n", q.Model, usageOf(p.tokens))
	}
	fmt.Fprint(w, "data: "+endOfStream+"\n\n")
}

// endOfStream is the last event of a whole answer.
const endOfStream = "[DONE]"
