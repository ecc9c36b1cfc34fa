package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"clove.run/clove/internal/packet"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/usage"
)

// anthropicVersion is the version of the formats that the tables of models/format describe.
const anthropicVersion = "2023-06-01"

// maxAnswer bounds an answer, in bytes: far above what a model's longest output takes.
const maxAnswer = 64 << 20

// endTime is for writing how a call ended.
const endTime = time.Second

// call makes one call, and reports how it ended. What is said is copied to copies.
func (s *Server) call(c link.Call, file *os.File, copies ...*os.File) {
	began := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	s.enter(c.Number, cancel)
	done := link.Done{Number: c.Number}
	defer func() {
		s.leave(c.Number)
		cancel()
		file.Close()
		packet.CloseAll(copies) // before the report: control has all of it then
		done.Total = time.Since(began)
		_ = s.control.Send(link.FromUpstream{Done: &done}) // without control nobody settles; it takes all for used
	}()
	p := s.providers[c.Provider]
	if p == nil {
		done.Error = "no provider " + strconv.Quote(c.Provider)
		return
	}
	body, err := link.ReceiveBody(file)
	if err != nil {
		done.Error = "the request broke off"
		return
	}
	for _, to := range copies {
		_ = link.SendBody(to, body) // a copy that fails is control's to notice
	}
	began = time.Now() // what comes before is clove-models' time, and not the provider's
	ctx, stop := context.WithTimeout(ctx, p.Total)
	defer stop()
	// A client that reads nothing more would hold the call's place at the provider for ever: a
	// moment after the end there is room for the error, and then the writes fail.
	defer context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Now().Add(endTime)) })()
	go watch(file, cancel)
	e := exchange{call: c, provider: p, out: link.Answer{W: file}, done: &done, began: began, cancel: cancel, copies: copies}
	if err := e.run(ctx, body); err != nil {
		done.Error = reason(ctx, err)
		_ = e.out.End(link.End{Error: done.Error}) // a client that is gone does not miss it
	}
}

// watch cancels a call whose client has gone: nothing more comes on the stream, so the first
// thing that is read is its end.
func watch(file *os.File, cancel context.CancelFunc) {
	var none [1]byte
	_, _ = file.Read(none[:])
	cancel()
}

// reason is what of an error an agent may read: no address and no key.
func reason(ctx context.Context, err error) string {
	var failed *url.Error
	switch {
	case errors.As(err, &failed) && failed.Timeout(), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "the provider did not answer in time"
	case errors.As(err, &failed):
		return "the provider cannot be reached"
	}
	return err.Error()
}

// exchange is one request and its answer.
type exchange struct {
	call     link.Call
	provider *provider
	out      link.Answer
	done     *link.Done
	began    time.Time
	cancel   context.CancelFunc
	copies   []*os.File  // of the answer
	sent     atomic.Bool // a connection to the provider took the request, or a part of it
}

func (e *exchange) run(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.provider.Endpoints[e.call.Format], bytes.NewReader(body))
	if err != nil {
		return err
	}
	e.authorize(request.Header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "clove")
	connected := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { e.sent.Store(true) }}
	answer, err := e.provider.client.Do(request.WithContext(httptrace.WithClientTrace(ctx, connected)))
	if e.done.Sent = e.sent.Load(); err != nil {
		e.assume()
		return err
	}
	defer answer.Body.Close()
	e.done.Status = answer.StatusCode
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return fmt.Errorf("the provider answers with a redirection (%d), which is not followed", answer.StatusCode)
	}
	head := link.Head{Status: answer.StatusCode, Type: contentType(answer.Header), After: retryAfter(answer.Header), ID: requestID(answer.Header, e.provider.Key)}
	e.done.After, _ = strconv.Atoi(head.After)
	if err := e.out.Head(head); err != nil {
		return err
	}
	return e.copy(answer)
}

// authorize adds the key in the family's own way.
func (e *exchange) authorize(h http.Header) {
	if e.call.Format.Family() == models.Anthropic {
		h.Set("Anthropic-Version", anthropicVersion)
		if len(e.call.Betas) > 0 {
			h.Set("Anthropic-Beta", strings.Join(e.call.Betas, ","))
		}
		if e.provider.Key != "" {
			h.Set("X-Api-Key", e.provider.Key)
		}
		return
	}
	if e.provider.Key != "" {
		h.Set("Authorization", "Bearer "+e.provider.Key)
	}
}

// copy passes the answer on as it comes, and measures it.
func (e *exchange) copy(answer *http.Response) error {
	meter := usage.New(e.call.Format, e.call.Stream && answer.StatusCode < 300)
	defer func() { e.settle(meter.Result(), answer.StatusCode) }()
	idle := time.AfterFunc(e.provider.Pause, e.cancel)
	defer idle.Stop()
	buffer, keyless, total := make([]byte, 32<<10), newRedactor(e.provider.Key), 0
	for {
		n, err := answer.Body.Read(buffer)
		idle.Reset(e.provider.Pause)
		if n > 0 {
			if e.done.First == 0 {
				e.done.First = time.Since(e.began)
			}
			if total += n; total > maxAnswer {
				return errors.New("the answer is too long")
			}
			meter.Write(buffer[:n])
			if e.pass(keyless.next(buffer[:n])) != nil {
				return errors.New("the client is gone")
			}
			if most := e.call.MostOut; most > 0 && meter.Streamed() > most {
				return errors.New("the answer is longer than its budget allows")
			}
		}
		if err == io.EOF {
			_ = e.pass(keyless.rest()) // End fails as well
			return e.out.End(link.End{})
		}
		if err != nil {
			return errors.New("the answer broke off")
		}
	}
}

// pass passes a part of the answer on, without the key.
func (e *exchange) pass(part []byte) error {
	for _, to := range e.copies {
		_, _ = to.Write(part) // as the body
	}
	_, err := e.out.Write(part)
	return err
}

// settle notes what to settle. Providers ask nothing for errors.
func (e *exchange) settle(r usage.Result, status int) {
	e.done.Model, e.done.Tiers, e.done.Reported, e.done.Complete = r.Model, r.Tiers, r.Reported, r.Complete
	if status < 300 {
		e.done.Usage = r.Charge(e.call.Format, e.call.In)
	}
}

// assume notes what to settle without an answer: the provider may have read the request, and
// an agent that cancels each call before its answer would pay for none.
func (e *exchange) assume() {
	if e.done.Sent {
		e.done.Usage = usage.Result{}.Charge(e.call.Format, e.call.In)
	}
}

// contentType passes only types that a format has.
func contentType(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if kind == "text/event-stream" {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// maxAfter bounds what a provider may have clients wait for, in seconds.
const maxAfter = 3600

func retryAfter(h http.Header) string {
	if n, err := strconv.Atoi(h.Get("Retry-After")); err == nil && n >= 0 && n <= maxAfter {
		return strconv.Itoa(n)
	}
	return ""
}

// requestID passes a provider's id of a request, for people who ask the provider.
func requestID(h http.Header, key string) string {
	for _, name := range []string{"X-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" && len(id) <= 128 && printable(id) && (key == "" || !strings.Contains(id, key)) {
			return id
		}
	}
	return ""
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}
