package upstream

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// soon is for what must end by itself.
const soon = 20 * time.Second

// short is a limit that a test runs into.
const short = 50 * time.Millisecond

var quiet = log.New(io.Discard, "", 0)

// event writes one event of a stream.
func event(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/event-stream")
	if _, err := io.WriteString(w, "data: "+text+"\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

const (
	messageStart = `{"type":"message_start","message":{"model":"c","usage":{"input_tokens":25,"output_tokens":1}}}`
	someText     = `{"type":"content_block_delta","delta":{"type":"text_delta","text":"abcdefghijklmnopqrstuvwxyzabcd"}}` // 10 tokens
)

// The first report of a stream says one token of output. One that is cut there costs what
// was streamed.
func TestACutStreamCostsWhatCame(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		event(w, messageStart)
		for range 3 {
			event(w, someText)
		}
		panic(http.ErrAbortHandler)
	}, nil)
	a, d := r.call(link.Call{Format: models.AnthropicMessages, In: 99}, "{}")
	if a.err == nil || a.err.Error() != "the answer broke off" || d.Complete || d.Usage != (models.Usage{In: 25, Out: 30}) {
		t.Errorf("%+v, %+v", a, d)
	}
}

// A client that goes before the answer pays for the input: the provider has read it.
func TestACancelledCallCostsItsInput(t *testing.T) {
	t.Parallel()
	asked, gone := make(chan bool, 2), make(chan bool, 2)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) {
		io.Copy(io.Discard, q.Body) // only then the server sees the end of the connection
		asked <- true
		<-q.Context().Done()
		gone <- true
	}, nil)
	cancels := map[string]func(stream io.Closer){
		"the stream closes": func(stream io.Closer) { stream.Close() },
		"control cancels":   func(io.Closer) { _ = r.conn.Send(link.ToUpstream{Cancel: r.last}) },
	}
	for name, cancel := range cancels {
		stream := r.begin(link.Call{Format: models.OpenAIChat, In: 99}, "{}")
		<-asked
		cancel(stream)
		if d := r.ended(); !d.Sent || d.Status != 0 || d.Usage != (models.Usage{In: 99}) {
			t.Errorf("%s: %+v", name, d)
		}
		<-gone
	}
}

// Errors cost nothing, also where they say that they do.
func TestErrorsCostNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error","usage":{"input_tokens":5,"output_tokens":5}}`)
	}, nil)
	a, d := r.call(link.Call{Format: models.AnthropicMessages, In: 99}, "{}")
	if a.err != nil || a.head.Status != 529 || a.head.After != "7" || d.After != 7 || d.Usage != (models.Usage{}) || !d.Sent {
		t.Errorf("%+v, %+v", a, d)
	}
}

func TestNoRedirectionIsFollowed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		http.Redirect(w, q, "/elsewhere?key="+q.Header.Get("Authorization"), http.StatusTemporaryRedirect)
	}, nil)
	a, d := r.call(link.Call{Format: models.OpenAIChat}, "{}")
	if asked.Load() != 1 || a.err == nil || !strings.Contains(a.err.Error(), "redirection (307)") || d.Status != 307 || strings.Contains(fmt.Sprint(a, d), testKey) {
		t.Errorf("%d requests, %+v, %+v", asked.Load(), a, d)
	}
}

// Each wait ends: for the head, between two parts, and for all.
func TestSlowProviders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit   func(p *link.Provider)
		provide http.HandlerFunc
		want    string
	}{
		"no head":  {func(p *link.Provider) { p.First = short }, func(_ http.ResponseWriter, q *http.Request) { io.Copy(io.Discard, q.Body); untilGone(q) }, "did not answer in time"},
		"no more":  {func(p *link.Provider) { p.Pause = short }, func(w http.ResponseWriter, q *http.Request) { event(w, someText); untilGone(q) }, "broke off"},
		"no end":   {func(p *link.Provider) { p.Total = 4 * short }, endless, "did not answer in time"},
		"no bytes": {func(p *link.Provider) { p.First = short }, func(w http.ResponseWriter, q *http.Request) { http.NewResponseController(w).Flush(); untilGone(q) }, "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.provide, func(s *link.Setup) {
				p := s.Providers["p"]
				row.limit(&p)
				s.Providers["p"] = p
			})
			if a, d := r.call(link.Call{Format: models.AnthropicMessages}, "{}"); a.err == nil || !strings.Contains(d.Error, row.want) || d.Total > soon {
				t.Errorf("%v, %+v", a.err, d)
			}
		})
	}
}

// The wait for the first token is one of its own: a model may think for longer than it pauses
// later. Until then nothing is passed on, so that another target can serve the call.
func TestTheFirstTokenMayTakeLongerThanTheNext(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first time.Duration
		ok    bool
	}{"control": {patience, true}, "too late": {short, false}} {
		r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(chatAnswer))) // so that nothing is waited for behind it
			http.NewResponseController(w).Flush()
			select {
			case <-time.After(4 * short):
				io.WriteString(w, chatAnswer)
			case <-q.Context().Done():
			}
		}, func(s *link.Setup) {
			p := s.Providers["p"]
			p.First, p.Pause = row.first, short
			s.Providers["p"] = p
		})
		a, d := r.call(link.Call{Format: models.OpenAIChat, In: 9}, "{}")
		if (a.err == nil) != row.ok || (a.head.Status == 200) != row.ok || (d.First > 0) != row.ok || !row.ok && d.Error != "the provider did not answer in time" {
			t.Errorf("%s: %+v, %+v", name, a, d)
		}
	}
}

// endless streams text until nobody reads it.
func endless(w http.ResponseWriter, _ *http.Request) {
	for event(w, someText) == nil {
	}
}

// A stream without an end is cut at the tokens that its budget has.
func TestAnEndlessStreamIsCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, endless, nil)
	a, d := r.call(link.Call{Format: models.AnthropicMessages, MostOut: 1000}, "{}")
	if a.err == nil || !strings.Contains(a.err.Error(), "longer than its budget") || d.Usage.Out <= 1000 || d.Usage.Out > 20_000 {
		t.Errorf("%v, %+v", a.err, d)
	}
}

// Ten gigabytes are not read to their end, and are not kept.
func TestAHugeAnswerIsCut(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		spaces := []byte(strings.Repeat(" ", 1<<20))
		for written.Load() < 10<<30 {
			n, err := w.Write(spaces)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	}, nil)
	stream := r.begin(link.Call{Format: models.OpenAIChat, In: 99}, "{}")
	reader, total := link.NewReader(stream), 0
	_, err := reader.Head()
	for err == nil {
		var part []byte
		part, err = reader.Next()
		total += len(part)
	}
	if d := r.ended(); err.Error() != "the answer is too long" || d.Error != err.Error() || total > maxAnswer || d.Usage.In != 99 {
		t.Errorf("%d bytes, %v, %+v", total, err, d)
	}
	if n := written.Load(); n > 2*maxAnswer {
		t.Errorf("%d bytes were written", n)
	}
}

// An agent that reads nothing more holds its place at the provider for no longer than a
// provider may pause.
func TestAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, endless, func(s *link.Setup) {
		p := s.Providers["p"]
		p.Pause = 4 * short
		s.Providers["p"] = p
	})
	r.begin(link.Call{Format: models.AnthropicMessages, In: 9}, "{}")
	if d := r.ended(); d.Status != 200 || d.Complete || d.Usage.Out == 0 {
		t.Errorf("%+v", d)
	}
}

func TestAHugeHeadIsRefused(t *testing.T) {
	t.Parallel()
	for size, refused := range map[int]bool{100: false, 2 * maxHead: true} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", strings.Repeat("a", size))
		}, nil)
		if a, d := r.call(link.Call{Format: models.OpenAIChat}, "{}"); (a.err != nil) != refused || !refused && a.head.ID == "" {
			t.Errorf("%d bytes: %+v, %+v", size, a.head, d)
		}
	}
}

// What a provider says in its head reaches the agent only in forms that mean nothing else.
func TestHeadsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html")
		h.Set("Retry-After", "999999999")
		h.Set("X-Request-Id", "a b")
		h.Set("Request-Id", strings.Repeat("a", 129))
	}, nil)
	if a, _ := r.call(link.Call{Format: models.OpenAIChat}, "{}"); a.head != (link.Head{Status: 200, Type: "application/json"}) {
		t.Errorf("%+v", a.head)
	}
}

// Some servers repeat the key that they refuse. No agent reads it, however it is split.
func TestTheKeyIsTakenOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		key := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("X-Request-Id", "req-"+key)
		w.WriteHeader(http.StatusUnauthorized)
		for _, part := range []string{"your key ", key, " and ", key[:1], key[1:9], key[9:], " and ", key[:5], key, "; not ", key[:8]} {
			io.WriteString(w, part)
			http.NewResponseController(w).Flush()
		}
	}, nil)
	a, d := r.call(link.Call{Format: models.OpenAIChat}, "{}")
	if want := "your key [key] and [key] and " + testKey[:5] + "[key]; not " + testKey[:8]; a.text != want || a.err != nil || strings.Contains(fmt.Sprint(a, d), testKey) {
		t.Errorf("%+v, %+v; want %q", a, d, want)
	}
}
