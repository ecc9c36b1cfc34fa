package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"clove.run/clove/internal/packet"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/usage"
	"clove.run/clove/secrets/redact"
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
	ctx, stop := context.WithCancelCause(context.Background())
	cancel := func() { stop(nil) }
	s.enter(c.Number, cancel)
	done := link.Done{Number: c.Number}
	defer func() {
		s.leave(c.Number)
		cancel()
		file.Close()
		packet.CloseAll(copies) // before the report: control has all of it then
		done.Total = time.Since(began)
		if s.control.Send(link.FromUpstream{Done: &done}) != nil {
			done.Ticket = c.Ticket
			s.journal.add(done)
		}
	}()
	p := s.providers[c.Provider]
	if p == nil {
		done.Error = "no provider " + strconv.Quote(c.Provider)
		return
	}
	body, release, err := s.body(c, p, file)
	if err != nil {
		done.Error = "the request broke off"
		return
	}
	defer release()
	for _, to := range copies {
		_ = link.SendBody(to, body) // a copy that fails is control's to notice
	}
	began = time.Now() // what comes before is clove-models' time, and not the provider's
	ctx, end := context.WithTimeoutCause(ctx, p.Total, errSlow)
	defer end()
	// A client that reads nothing more would hold the call's place at the provider for ever: a
	// moment after the end there is room for the error, and then the writes fail.
	defer context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Now().Add(endTime)) })()
	go watch(file, cancel)
	e := exchange{call: c, provider: p, out: link.Answer{W: file}, done: &done, began: began, stop: stop, copies: copies,
		keyless: newRedactor(p.secret), more: func() int64 { return s.more(c.Number) }}
	if err := e.run(ctx, body); err != nil {
		done.Error = reason(ctx, err)
		done.Fault, done.Detail = e.fault(ctx, err)
		_ = e.out.End(link.End{Error: done.Error}) // a client that is gone does not miss it
	}
}

// bodyTime bounds the wait for a whole body, which clove-models has when the call begins. One
// that sent none would hold the call's place at the provider.
const bodyTime = 30 * time.Second

// body reads a call's body. release gives back the room that it takes.
func (s *Server) body(c link.Call, p *provider, file *os.File) (body []byte, release func(), err error) {
	if err := file.SetReadDeadline(time.Now().Add(min(bodyTime, p.Pause))); err != nil {
		return nil, nil, err
	}
	taken := int64(0)
	release = func() { s.bodies.give(c.Owner, taken) }
	body, err = link.ReceiveBody(file, func(bytes int64) bool {
		if s.bodies.take(c.Owner, bytes) {
			taken = bytes
			return true
		}
		return false
	})
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // watch waits for as long as the call takes
	}
	if err != nil {
		release()
	}
	return body, release, err
}

// watch cancels a call whose client has gone: nothing more comes on the stream, so the first
// thing that is read is its end.
func watch(file *os.File, cancel context.CancelFunc) {
	var none [1]byte
	_, _ = file.Read(none[:])
	cancel()
}

// What ends a call that takes too long.
var (
	errSlow   = errors.New("the provider did not answer in time")
	errPaused = errors.New("the answer broke off: the provider paused for too long")
)

// reason is what of an error an agent may read: no address and no key.
func reason(ctx context.Context, err error) string {
	var failed *url.Error
	switch cause := context.Cause(ctx); {
	case cause == errSlow, cause == errPaused:
		return cause.Error()
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
	stop     context.CancelCauseFunc
	wait     *time.Timer  // for the next byte of the answer
	meter    *usage.Meter // nil: nothing came that it could measure
	keyless  *redact.Redactor
	more     func() int64 // has more output reserved, and returns how much there is then, in tokens
	sent     atomic.Bool  // a connection to the provider took the request, or a part of it
	unproven atomic.Bool  // TLS failed
	copies   []*os.File   // of the answer
}

func (e *exchange) run(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.provider.Endpoints[e.call.Format], bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "clove")
	e.authorize(request.Header)
	e.wait = time.AfterFunc(e.provider.First, func() { e.stop(errSlow) })
	defer func() { e.wait.Stop() }()
	answer, err := e.provider.client.Do(request.WithContext(e.trace(ctx)))
	if e.done.Sent = e.sent.Load(); err != nil {
		e.done.Unreached = !e.done.Sent && !errors.Is(err, errDials) && (ctx.Err() == nil || context.Cause(ctx) == errSlow)
		e.assume()
		return err
	}
	defer answer.Body.Close()
	e.done.Status = answer.StatusCode
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return fmt.Errorf("the provider answers with a redirection (%d), which is not followed", answer.StatusCode)
	}
	if encoding := strings.Join(answer.Header.Values("Content-Encoding"), ","); encoding != "" && !strings.EqualFold(encoding, "identity") {
		e.settle(answer.StatusCode) // a key in it would not be found
		return errors.New("the provider encodes its answer, although the request accepts identity only: see Content-Encoding in the provider's settings")
	}
	head := link.Head{Status: answer.StatusCode, Type: contentType(answer.Header), After: retryAfter(answer.Header, time.Now()), ID: requestID(answer.Header, e.provider.secret)}
	e.done.After, _ = strconv.Atoi(head.After)
	e.done.Limits = limits(answer.Header)
	return e.copy(answer, head)
}

// authorize adds the key in the family's own way, or as a subscription's token.
func (e *exchange) authorize(h http.Header) {
	betas, s := e.call.Betas, models.SubscriptionOf(e.provider.Subscription)
	if s != nil {
		betas = e.subscribe(h, s)
	}
	anthropic := e.call.Format.Family() == models.Anthropic
	if anthropic {
		h.Set("Anthropic-Version", anthropicVersion)
		if len(betas) > 0 {
			h.Set("Anthropic-Beta", strings.Join(betas, ","))
		}
	}
	switch {
	case e.provider.Key == "":
	case anthropic && s == nil:
		h.Set("X-Api-Key", e.provider.Key)
	default:
		h.Set("Authorization", "Bearer "+e.provider.Key)
	}
}

// subscribe adds what a subscription's provider gets beside the token: of the agent's headers
// those that the client's row lets pass. It returns the values of anthropic-beta.
func (e *exchange) subscribe(h http.Header, s *models.Subscription) (betas []string) {
	for name, value := range e.call.Headers {
		if s.Lets(name, value) {
			h.Set(name, value)
		}
	}
	if e.provider.Account != "" && s.Account != "" {
		h.Set(s.Account, e.provider.Account)
	}
	if s.Beta == "" {
		return e.call.Betas
	}
	return append(slices.Clone(e.call.Betas), s.Beta)
}

// copy passes the answer on as it comes, and measures it. The head goes with the first byte: until
// then another target may serve the call.
func (e *exchange) copy(answer *http.Response, head link.Head) error {
	defer func() { e.settle(answer.StatusCode) }()
	buffer, total := make([]byte, 32<<10), 0
	for {
		n, err := answer.Body.Read(buffer)
		if total == 0 && (n > 0 || err == io.EOF) {
			e.begins(n > 0)
			if werr := e.out.Head(head); werr != nil {
				return werr
			}
		}
		if n > 0 {
			e.wait.Reset(e.provider.Pause)
			if total += n; total > maxAnswer {
				return errors.New("the answer is too long")
			}
			if err := e.take(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			_ = e.pass(e.keyless.Rest()) // End fails as well
			return e.out.End(link.End{})
		}
		if err != nil {
			return errors.New("the answer broke off")
		}
	}
}

// take measures the next bytes of an answer, and passes on what may pass. What is behind the
// end of the reservation is neither measured nor passed.
func (e *exchange) take(part []byte) error {
	for len(part) > 0 {
		n := e.measure(part)
		for _, passes := range e.keyless.Next(part[:n]) {
			if e.pass(passes) != nil {
				return errors.New("the client is gone")
			}
		}
		part = part[n:]
		if e.exceeds() {
			if e.call.MostOut = e.more(); e.exceeds() || e.call.MostOut == 0 {
				return errors.New("the answer is longer than its budget allows")
			}
		}
	}
	return nil
}

// exceeds reports whether the text is longer than what is reserved.
func (e *exchange) exceeds() bool {
	return e.call.MostOut > 0 && e.meter != nil && e.meter.Streamed() > e.call.MostOut
}

// measure has the next bytes of an answer measured, up to the first with which it exceeds, and
// returns how many there were. The first byte shows whether it is a document or a stream of
// events. What clove-models says of that does not count, as it may be taken over: the wrong
// meter reads nothing.
func (e *exchange) measure(part []byte) int {
	if e.meter == nil {
		text := bytes.TrimLeft(part, spaces)
		if len(text) == 0 {
			return len(part)
		}
		e.meter = usage.New(e.call.Format, isStream(text))
	}
	if e.call.MostOut == 0 {
		n, _ := e.meter.Write(part)
		return n
	}
	return e.meter.WriteUpTo(part, e.call.MostOut)
}

// spaces may be before an answer.
const spaces = " \t\r\n"

// isStream reports whether an answer that begins so is a stream of events.
func isStream(text []byte) bool { return text[0] != '{' }

// begins ends the wait for the first byte of the answer, if it has one.
func (e *exchange) begins(has bool) {
	e.wait.Stop()
	e.wait = time.AfterFunc(e.provider.Pause, func() { e.stop(errPaused) })
	if has {
		e.done.First = time.Since(e.began)
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

// settle notes what to settle. Providers ask nothing for errors. Words of an answer go into logs
// and records, so one with the key has none.
func (e *exchange) settle(status int) {
	var r usage.Result
	if e.meter != nil {
		r = e.meter.Result()
	}
	e.done.Reported, e.done.Complete = r.Reported && r.Lacks == "", r.Complete
	if e.keyless.Rest(); !e.keyless.Found { // what was held back was not searched
		e.done.Model, e.done.Tiers = r.Model, r.Tiers
	}
	if status < 300 {
		e.done.Usage = r.Charge(e.call.Format, e.call.In)
		e.done.Estimated = e.done.Usage != r.Usage
	}
}

// assume notes what to settle without an answer: the provider may have read the request, and
// an agent that cancels each call before its answer would pay for none.
func (e *exchange) assume() {
	if e.done.Sent {
		e.done.Usage = usage.Result{}.Charge(e.call.Format, e.call.In)
		e.done.Estimated = e.done.Usage != models.Usage{}
	}
}
