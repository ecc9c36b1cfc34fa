package front

import (
	"context"
	"os"

	"clove.run/clove/models/link"
)

// question is one that control answers, under a number of its own.
type question struct {
	server  *Server
	number  uint64
	answers chan fromControl
}

// fromControl is control's, to a Begin or a List.
type fromControl struct {
	message link.ToFront
	stream  *os.File // with Go
}

// last reports whether nothing more follows.
func (a fromControl) last() bool { return a.message.Go == nil || !a.message.Go.Again }

// maxAnswers is above what control says to one Begin: a Go for each target that it tries, and a
// Refuse.
const maxAnswers = 16

// deliver gives an answer to whoever waits for it; else nobody does any more.
func (s *Server) deliver(number uint64, a fromControl) {
	s.mu.Lock()
	defer s.mu.Unlock() // while it sends: an end in between would leave the stream open
	q := s.waiting[number]
	if q != nil && a.last() {
		delete(s.waiting, number)
	}
	if q != nil {
		select {
		case q.answers <- a:
			return
		default: // an honest control does not come here
		}
	}
	if a.stream != nil {
		a.stream.Close()
	}
}

// ask sends a message with a number of its own, and waits for the answer. The caller ends the
// question, unless there is an error.
func (s *Server) ask(ctx context.Context, message func(number uint64) link.FromFront) (fromControl, *question, error) {
	q := &question{server: s, answers: make(chan fromControl, maxAnswers)}
	s.mu.Lock()
	s.last++
	q.number = s.last
	s.waiting[q.number] = q
	alone := s.alone
	s.mu.Unlock()
	if alone || s.control.Send(message(q.number)) != nil {
		return away, q, nil
	}
	a, err := q.await(ctx)
	return a, q, err
}

// await waits for the next answer. Where ctx ends, control is told that nobody waits.
func (q *question) await(ctx context.Context) (fromControl, error) {
	select {
	case a := <-q.answers:
		return a, nil
	case <-ctx.Done():
	}
	q.end()
	q.cancel()
	return fromControl{}, ctx.Err()
}

// cancel has control end the call, if it has not ended.
func (q *question) cancel() {
	_ = q.server.control.Send(link.FromFront{Cancel: q.number}) // if control is gone, so is the call
}

// end drops what was answered and not read.
func (q *question) end() {
	q.server.mu.Lock()
	delete(q.server.waiting, q.number)
	q.server.mu.Unlock()
	for {
		select {
		case a := <-q.answers:
			if a.stream != nil {
				a.stream.Close()
			}
		default:
			return
		}
	}
}
