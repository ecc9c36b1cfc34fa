package front

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// What control decides by is in Begin, and what the provider gets is the body alone.
func TestACallIsAskedForAndPassed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.decide = func(b link.Begin) link.ToFront {
			return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Out: 77}}
		}
		r.provide = func(_ *os.File, out link.Answer) {
			_ = out.Head(link.Head{Status: 200, Type: "application/json", ID: "req_1"})
			_, _ = out.Write([]byte(`{"a":`))
			_, _ = out.Write([]byte(`1}`))
			_ = out.End(link.End{})
		}
	})
	a := r.ask("POST", "/v1/chat/completions", chat(`,"n":2,"service_tier":"flex"`), "Authorization", "Bearer stolen", "Anthropic-Beta", "pdfs-2024-09-25")
	if a.status != 200 || a.text != `{"a":1}` || a.err != nil || a.header.Get("X-Request-Id") != "req_1" || a.header.Get("Request-Id") != "req_1" {
		t.Errorf("%+v", a)
	}
	b := within(t, r.begun)
	if b.Run != theRun || b.Format != models.OpenAIChat || b.Model != "small" || b.Stream || b.In < 1 || b.Out != 0 || b.N != 2 || fmt.Sprint(b.Tiers) != "[service_tier=flex]" || b.Betas != nil || b.Needs != nil {
		t.Errorf("%+v", b)
	}
	if body := within(t, r.bodies); !strings.Contains(body, `"model":"theirs"`) || !strings.Contains(body, `"max_completion_tokens":77`) || strings.Contains(body, "stolen") {
		t.Error(body)
	}
}

const messages = `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]%s}`

func TestWordsOfARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.ask("POST", "/v1/messages?beta=true", fmt.Sprintf(messages, `,"service_tier":"a b\r\n","speed":"fast"`), "Anthropic-Beta", "pdfs-2024-09-25, evil-2024-09-25,effort-2025-11-24, x\x80y")
	b := within(t, r.begun)
	if fmt.Sprint(b.Tiers) != "[service_tier=other speed=fast]" || fmt.Sprint(b.Betas) != "[pdfs-2024-09-25 effort-2025-11-24]" || b.Out != 9 {
		t.Errorf("%+v", b)
	}
	for _, word := range append(b.Tiers, b.Betas...) {
		if !link.IsWord(word) {
			t.Errorf("%q is no word", word)
		}
	}
}

// What a provider keeps by default stays only where the grant allows it.
func TestTheDefaultOfStore(t *testing.T) {
	t.Parallel()
	for _, granted := range [][]models.Need{nil, {models.ProviderTools}, {models.ProviderTools, models.ProviderState}} {
		r := newRig(t, func(r *rig) {
			r.decide = func(b link.Begin) link.ToFront {
				return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs", Granted: granted}}
			}
		})
		r.ask("POST", "/v1/responses", `{"model":"small","input":"Hello"}`)
		if body := within(t, r.bodies); strings.Contains(body, `"store":false`) == (len(granted) == 2) {
			t.Errorf("%v: %s", granted, body)
		}
	}
}

// Of what a client says of its trace, only the span's name goes on, and only to control.
func TestATraceparentIsPassed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const whole = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{
		whole: whole, "": "", "01" + whole[2:]: "", whole + "-x": "", strings.ToUpper(whole): "", strings.ReplaceAll(whole, "0", "g"): "", whole[:54] + "-": "",
	} {
		r.ask("POST", "/v1/chat/completions", chat(""), "Traceparent", sent, "Tracestate", "planted=1")
		if b := within(t, r.begun); b.Trace != want {
			t.Errorf("%q: %q", sent, b.Trace)
		}
		if body := within(t, r.bodies); strings.Contains(body, "0af76519") || strings.Contains(body, "planted") {
			t.Error(body)
		}
	}
}

// A need is for control to allow. Here it is only named.
func TestNeedsAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.ask("POST", "/v1/responses", `{"model":"small","input":"Hello","store":true}`)
	if b := within(t, r.begun); fmt.Sprint(b.Needs) != "[provider-state]" {
		t.Errorf("%+v", b)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, row := range []struct {
		method, path, headers string
		status                int
		contains              string
	}{
		{"HEAD", "/", "", 200, ""},
		{"GET", "/", "", 404, `"code":"not_found"`},
		{"GET", "/v1/models", "", 200, `"id":"small"`},
		{"GET", "/models", "2023-06-01", 200, `"type":"model"`},
		{"GET", "/v1/models/small", "", 200, `"id":"small"`},
		{"GET", "/v1/models/small", "", 200, `"formats":["openai-chat"]`},
		{"GET", "/v1/models/other", "", 404, "there is no model"},
		{"GET", "/v1/models/..%2f..%2fsmall", "", 404, "there is no model"},
		{"GET", "/v1/chat/completions", "", 404, "not served here"},
		{"GET", "/v1/responses", "", 404, "not served here"},
		{"POST", "/v1/files", "", 404, "not served here"},
		{"POST", "/v1/files", "2023-06-01", 404, `"type":"not_found_error"`},
		{"POST", "/v1//chat/completions", "", 404, "not served here"},
		{"POST", "/v1/chat/completions/../../../x", "", 404, "not served here"},
		{"POST", "/V1/chat/completions", "", 404, "not served here"},
	} {
		headers := []string{"X-None", "none"}
		if row.headers != "" {
			headers = []string{"Anthropic-Version", row.headers}
		}
		if a := r.ask(row.method, row.path, "{}", headers...); a.status != row.status || !strings.Contains(a.text, row.contains) {
			t.Errorf("%s %s: %+v", row.method, row.path, a)
		}
	}
	if len(r.begun) != 0 {
		t.Error("a call was asked for")
	}
}

// Each refusal has a status by which clients know whether to repeat, and says it, too.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for reason, row := range map[link.Reason]struct {
		status int
		again  string
	}{
		link.ReasonUnknown: {404, "false"}, link.ReasonNotGranted: {403, "false"}, link.ReasonNeed: {403, "false"}, link.ReasonBudget: {400, "false"},
		link.ReasonContext: {400, "false"}, link.ReasonNoPrice: {403, "false"}, link.ReasonBusy: {503, "true"}, link.ReasonFailed: {502, "true"},
	} {
		r := newRig(t, func(r *rig) {
			r.decide = func(b link.Begin) link.ToFront {
				return link.ToFront{Refuse: &link.Refuse{Number: b.Number, Reason: reason, Message: "because\r\nX: y", Hint: "do that", After: 3}}
			}
		})
		a := r.ask("POST", "/v1/chat/completions", chat(""))
		if a.status != row.status || a.header.Get("X-Should-Retry") != row.again || a.header.Get("Retry-After") != "3" || !strings.Contains(a.text, `because\r\nX: y (do that)`) || a.header.Get("X") != "" {
			t.Errorf("%s: %+v", reason, a)
		}
	}
}

func TestAnswersThatFail(t *testing.T) {
	t.Parallel()
	head := link.Head{Status: 200, Type: "text/event-stream; charset=utf-8"}
	for name, row := range map[string]struct {
		request  string
		provide  func(_ *os.File, out link.Answer)
		status   int
		contains string
		breaks   bool
	}{
		"before the head":           {chat(""), func(_ *os.File, out link.Answer) { _ = out.End(link.End{Error: "too slow"}) }, 502, "too slow", false},
		"nothing":                   {chat(""), func(*os.File, link.Answer) {}, 502, "broke off", false},
		"a frame of nonsense":       {chat(""), func(f *os.File, _ link.Answer) { _, _ = f.WriteString("Z\xff\xff\xff\xffmore") }, 502, "part of", false},
		"a document without an end": {chat(""), func(_ *os.File, out link.Answer) { _ = out.Head(link.Head{Status: 200}); _, _ = out.Write([]byte("{")) }, 200, "{", true},
		"a stream with an error": {chat(`,"stream":true`), func(_ *os.File, out link.Answer) {
			_ = out.Head(head)
			_, _ = out.Write([]byte("data: {}\n\n"))
			_ = out.End(link.End{Error: "too long"})
		}, 200, `"message":"too long"`, false},
		"a stream that breaks off": {chat(`,"stream":true`), func(_ *os.File, out link.Answer) { _ = out.Head(head); _, _ = out.Write([]byte("data: {}\n\n")) }, 200, "broke off", true},
		"an error of the provider": {chat(`,"stream":true`), func(_ *os.File, out link.Answer) {
			_ = out.Head(link.Head{Status: 429, Type: "application/json", After: "9"})
			_, _ = out.Write([]byte(`{"error":{}}`))
			_ = out.End(link.End{})
		}, 429, `{"error":{}}`, false},
	} {
		r := newRig(t, func(r *rig) { r.provide = row.provide })
		if a := r.ask("POST", "/v1/chat/completions", row.request); a.status != row.status || !strings.Contains(a.text, row.contains) || (a.err != nil) != row.breaks {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
