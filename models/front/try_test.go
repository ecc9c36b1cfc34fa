package front

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/models/link"
)

// tries has the targets answer one after another, each as a row says.
func tries(t *testing.T, request string, last link.ToFront, rows ...func(stream *os.File, out link.Answer)) (*rig, reply) {
	t.Helper()
	next := make(chan func(*os.File, link.Answer), len(rows))
	for _, row := range rows {
		next <- row
	}
	r := newRig(t, func(r *rig) {
		goes := func(number uint64) link.ToFront {
			return link.ToFront{Go: &link.Go{Number: number, Model: "target-" + string('a'+rune(len(rows)-len(next))), Again: len(next) > 1 || last.Refuse != nil}}
		}
		number := uint64(0)
		r.decide = func(b link.Begin) link.ToFront { number = b.Number; return goes(b.Number) }
		r.provide = func(stream *os.File, out link.Answer) {
			(<-next)(stream, out)
			switch {
			case len(next) > 0:
				r.answer(goes(number))
			case last.Refuse != nil:
				last.Refuse.Number = number
				r.answer(last)
			}
		}
	})
	return r, r.ask("POST", "/v1/chat/completions", request)
}

// answers is a target that answers with a status and a text.
func answers(status int, parts ...string) func(*os.File, link.Answer) {
	return func(_ *os.File, out link.Answer) {
		_ = out.Head(link.Head{Status: status, Type: "application/json", After: "7"})
		for _, part := range parts {
			_, _ = out.Write([]byte(part))
		}
		_ = out.End(link.End{})
	}
}

// unanswered is one that fails before its head.
func unanswered(_ *os.File, out link.Answer) {
	_ = out.End(link.End{Error: "the provider cannot be reached"})
}

// The client gets one answer: of the first target that does not fail, or the last failure.
// What has begun is never repeated, and neither is an error that the request is the reason of.
func TestOneAnswerOfSeveralTargets(t *testing.T) {
	t.Parallel()
	none := link.ToFront{}
	refused := func() link.ToFront {
		return link.ToFront{Refuse: &link.Refuse{Reason: link.ReasonBudget, Message: "no other target"}}
	}
	breaks := func(_ *os.File, out link.Answer) {
		_ = out.Head(link.Head{Status: 200, Type: "application/json"})
		_, _ = out.Write([]byte("begun"))
	}
	for name, row := range map[string]struct {
		last   link.ToFront
		rows   []func(*os.File, link.Answer)
		status int
		text   string
		asked  int
		breaks bool
	}{
		"the first answers":         {none, []func(*os.File, link.Answer){answers(200, "first"), answers(200, "second")}, 200, "first", 1, false},
		"overloaded":                {none, []func(*os.File, link.Answer){answers(529, "busy"), answers(200, "se", "cond")}, 200, "second", 2, false},
		"unreachable":               {none, []func(*os.File, link.Answer){unanswered, answers(200, "second")}, 200, "second", 2, false},
		"two fail":                  {none, []func(*os.File, link.Answer){unanswered, answers(503), answers(200, "third")}, 200, "third", 3, false},
		"all fail":                  {none, []func(*os.File, link.Answer){answers(529, "first"), answers(429, "second")}, 429, "second", 2, false},
		"the next is refused":       {refused(), []func(*os.File, link.Answer){answers(429, "mine ", "alone")}, 429, "mine alone", 1, false},
		"refused without an answer": {refused(), []func(*os.File, link.Answer){unanswered}, 502, "cannot be reached", 1, false},
		"a long error":              {refused(), []func(*os.File, link.Answer){answers(503, "kept", strings.Repeat("x", maxHeld))}, 503, "kept", 1, false},
		"a wrong request":           {none, []func(*os.File, link.Answer){answers(400, "wrong"), answers(200, "second")}, 400, "wrong", 1, false},
		"its own failure":           {none, []func(*os.File, link.Answer){answers(500, "broken"), answers(200, "second")}, 500, "broken", 1, false},
		"it has begun":              {none, []func(*os.File, link.Answer){breaks, answers(200, "second")}, 200, "begun", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, a := tries(t, chat(""), row.last, row.rows...)
			if a.status != row.status || !strings.Contains(a.text, row.text) || len(a.text) > len(row.text)+200 || (a.err != nil) != row.breaks {
				t.Errorf("%+v", a)
			}
			for i := range row.asked {
				if body := within(t, r.bodies); !strings.Contains(body, `"target-`+string('a'+rune(i))+`"`) {
					t.Errorf("try %d: %s", i, body)
				}
			}
			if len(r.bodies) != 0 {
				t.Error("one more was asked")
			}
			if row.status == 429 && a.header.Get("Retry-After") != "7" {
				t.Errorf("%v", a.header)
			}
		})
	}
}

// A client that goes while control looks for a target ends the call, and no stream stays open.
func TestAClientThatGoesBetweenTargets(t *testing.T) {
	t.Parallel()
	failed := make(chan bool, 1)
	r := newRig(t, func(r *rig) {
		r.decide = func(b link.Begin) link.ToFront {
			return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Again: true}}
		}
		r.provide = func(stream *os.File, out link.Answer) { unanswered(stream, out); failed <- true }
	})
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.address+"/v1/chat/completions", strings.NewReader(chat("")))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.Do(q)
		ended <- err
	}()
	within(t, failed)
	number := within(t, r.begun).Number
	cancel()
	if err := within(t, ended); err == nil {
		t.Error("there was an answer")
	}
	if got := within(t, r.cancels); got != number {
		t.Errorf("%d is cancelled, not %d", got, number)
	}
	within(t, r.bodies)
	r.answer(link.ToFront{Go: &link.Go{Number: number, Model: "late"}})
	for deadline := time.Now().Add(soon); r.sides.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the late stream is open")
		}
	}
	if len(r.bodies) != 0 {
		t.Error("the late target was asked")
	}
}
