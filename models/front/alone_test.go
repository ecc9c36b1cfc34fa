package front

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"clove.run/clove/models/link"
)

// When control is gone, an answer that has begun comes to its end, and a call that was not
// decided is refused so that clients ask again. Then the process ends; the listener stays for
// the next.
func TestControlIsGone(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	r := newRig(t, func(r *rig) {
		r.decide = func(b link.Begin) link.ToFront {
			if b.Model == "undecided" {
				return link.ToFront{}
			}
			return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Again: true}}
		}
		r.provide = func(_ *os.File, out link.Answer) {
			_ = out.Head(link.Head{Status: 200, Type: "application/json"})
			_, _ = out.Write([]byte(`{"first":1,`))
			begun <- struct{}{}
			<-goOn
			_, _ = out.Write([]byte(`"last":2}`))
			_ = out.End(link.End{})
		}
	})
	whole, undecided := make(chan reply, 1), make(chan reply, 1)
	go func() { whole <- r.ask("POST", "/v1/chat/completions", chat("")) }()
	within(t, begun)
	go func() {
		undecided <- r.ask("POST", "/v1/chat/completions", strings.Replace(chat(""), "small", "undecided", 1))
	}()
	for within(t, r.begun).Model != "undecided" {
	}
	r.conn.Close()
	if a := within(t, undecided); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" || !strings.Contains(a.text, "cloved is away") {
		t.Errorf("%+v", a)
	}
	select {
	case err := <-r.served:
		t.Fatalf("it ended before the answer: %v", err)
	default:
	}
	close(goOn)
	if a := within(t, whole); a.status != http.StatusOK || a.text != `{"first":1,"last":2}` {
		t.Errorf("%+v", a)
	}
	if err := within(t, r.served); err != nil {
		t.Error(err)
	}
}

// The same for a target that fails: no other is named, and its failure stands.
func TestControlIsGoneBeforeATargetFails(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	r := newRig(t, func(r *rig) {
		r.decide = func(b link.Begin) link.ToFront {
			return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Again: true}}
		}
		r.provide = func(stream *os.File, out link.Answer) {
			begun <- struct{}{}
			<-goOn
			answers(529, `{"error":1}`)(stream, out)
		}
	})
	failed := make(chan reply, 1)
	go func() { failed <- r.ask("POST", "/v1/chat/completions", chat("")) }()
	within(t, begun)
	r.conn.Close()
	close(goOn)
	if a := within(t, failed); a.status != 529 || a.text != `{"error":1}` {
		t.Errorf("%+v", a)
	}
	if err := within(t, r.served); err != nil {
		t.Error(err)
	}
}
