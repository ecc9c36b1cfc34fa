package upstream

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/usage"
)

// size begins a body of so many bytes.
func size(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// A clove-models that was taken over has a call made and sends no body, or half of one. The
// call ends, so that its place at the provider is free again.
func TestABodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, chatAnswer) }
	r := newRig(t, answer, func(s *link.Setup) {
		p := s.Providers["p"]
		p.Pause = 4 * short
		s.Providers["p"] = p
	})
	for _, text := range []string{"", "\x00", size(4), size(4) + "abc", size(link.MaxBody + 1), size(1<<32 - 1)} {
		if _, err := io.WriteString(r.order(link.Call{Format: models.OpenAIChat, In: 9}), text); err != nil {
			t.Fatal(err)
		}
		if d := r.ended(); d.Error != "the request broke off" || d.Sent || d.Usage != (models.Usage{}) {
			t.Errorf("%q: %+v", text, d)
		}
	}
	if a, d := newRig(t, answer, nil).call(link.Call{Format: models.OpenAIChat, In: 9}, "{}"); a.err != nil || !d.Complete {
		t.Errorf("control: %+v, %+v", a, d)
	}
}

// The bodies of one owner take so much memory of this process and no more. Another owner has
// as much.
func TestBodiesAreBoundedForEachOwner(t *testing.T) {
	t.Parallel()
	asked := make(chan bool, 4)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		io.Copy(io.Discard, q.Body)
		asked <- true
		untilGone(q)
	}))
	t.Cleanup(web.Close)
	p := link.Provider{Endpoints: map[models.Format]string{models.OpenAIChat: "http://provider.test/"}, First: soon, Pause: soon, Total: soon}
	r := startRig(t, link.Setup{Providers: map[string]link.Provider{"p": p}}, web.Listener.Addr().String(), func(s *Server) { s.bodies = newOwnerLimits(10) })
	call := func(owner uint32) link.Call { return link.Call{Owner: owner, Format: models.OpenAIChat} }
	first := r.begin(call(1), "123456")
	<-asked
	if _, err := io.WriteString(r.order(call(1)), size(5)); err != nil {
		t.Fatal(err)
	}
	if d := r.ended(); d.Number != 2 || d.Sent || d.Error != "the request broke off" {
		t.Errorf("%+v", d)
	}
	r.begin(call(2), "123456")
	<-asked
	first.Close()
	if d := r.ended(); d.Number != 1 || !d.Sent {
		t.Errorf("%+v", d)
	}
	r.begin(call(1), "1234567890") // all of it is free again
	<-asked
}

// streamed is chatAnswer as a stream.
const streamed = `data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"abcdef"}}]}

data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}

data: [DONE]

`

// An answer is measured by the form that it has. The control: the meter of the other form
// reads nothing of it, so that a clove-models that was taken over would pay nothing if it
// said which one to use.
func TestTheFormOfAnAnswerIsSeen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text, kind string
		stream     bool
	}{
		"a document":               {chatAnswer, "application/json", false},
		"a document called stream": {chatAnswer, "text/event-stream", false},
		"behind spaces":            {" \r\n\t" + chatAnswer, "application/json", false},
		"a stream":                 {streamed, "text/event-stream", true},
		"a stream called document": {streamed, "application/json", true},
		"behind lines":             {"\n\r\n: comment\n\n" + streamed, "text/event-stream", true},
	} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", row.kind)
			for _, part := range []string{row.text[:1], row.text[1:4], row.text[4:]} {
				io.WriteString(w, part)
				http.NewResponseController(w).Flush()
			}
		}, nil)
		a, d := r.call(link.Call{Format: models.OpenAIChat, In: 1}, "{}")
		if a.text != row.text || d.Usage != (models.Usage{In: 7, Out: 3}) || !d.Reported || !d.Complete {
			t.Errorf("%s: %+v, %+v", name, a, d)
		}
		other := usage.New(models.OpenAIChat, !row.stream)
		io.WriteString(other, row.text)
		if result := other.Result(); result.Reported || result.Streamed > 0 {
			t.Errorf("control: %s: %+v", name, result)
		}
	}
}

// The words of an answer that go into records are without the key, too, if the provider
// writes it there.
func TestTheKeyIsInNoReport(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf(`{"model":"%[1]s","service_tier":"%[1]s","usage":{"prompt_tokens":7,"completion_tokens":3}}`, testKey)
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }, nil)
	a, d := r.call(link.Call{Format: models.OpenAIChat}, "{}")
	if strings.Contains(fmt.Sprint(a, d), testKey) || d.Model != "" || len(d.Tiers) > 0 || d.Usage != (models.Usage{In: 7, Out: 3}) {
		t.Errorf("%+v, %+v", a, d)
	}
	plain := usage.New(models.OpenAIChat, false)
	io.WriteString(plain, text)
	if result := plain.Result(); result.Model != testKey {
		t.Errorf("control: %+v", result)
	}
}
