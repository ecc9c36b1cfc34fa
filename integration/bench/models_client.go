package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// roleAsker is this binary as a client of models.
const roleAsker = "asker"

// modelOrder is what the client is told to do, one JSON object a line: each of so many
// callers at once asks so many times. Streams of an earlier order end first.
type modelOrder struct {
	Model   string
	Stream  bool
	Callers int
	Turns   int
	PauseMS int  // before each turn: clove draws a block for a run's next call when the last one is paid
	Hold    bool // leave the streams open behind the first token
}

// asker asks a provider, or what stands in front of it.
type asker struct {
	base   string // URL, with /v1
	header http.Header
	client *http.Client

	mu     sync.Mutex // guards the following
	held   []io.Closer
	tokens int
}

// askerMain is main of this binary in the role of a client of models. The arguments are a
// base URL, empty for the environment's, and header fields.
func askerMain(args []string) error {
	if len(args) < 1 {
		return errors.New("bench asker BASE [NAME: VALUE ...]")
	}
	a := newAsker(args[0])
	for _, field := range args[1:] {
		name, value, _ := strings.Cut(field, ": ")
		a.header.Set(name, value)
	}
	return answerOrders(os.Stdin, os.Stdout, a.obey)
}

func newAsker(base string) *asker {
	if base == "" {
		base = os.Getenv("OPENAI_BASE_URL")
	}
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer bench"}}
	return &asker{base: base, header: header, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxStreams}}}
}

// maxStreams is the most that an errand has at once, and what clove lets an agent have.
const maxStreams = 64

// obey returns how long each answer took, in milliseconds: to the first token, without the
// provider's part; without a stream, to its end.
func (a *asker) obey(o modelOrder) (r report) {
	a.drop()
	began := time.Now()
	var err error
	r.Values, err = atOnce(o.Callers, func(int) ([]float64, error) { return a.turns(o) })
	r.Seconds, r.Tokens = time.Since(began).Seconds(), a.tokens
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// drop ends what is held.
func (a *asker) drop() {
	for _, stream := range a.held {
		stream.Close()
	}
	a.held, a.tokens = nil, 0
}

func (a *asker) turns(o modelOrder) (took []float64, err error) {
	for range o.Turns {
		time.Sleep(time.Duration(o.PauseMS) * time.Millisecond)
		ms, err := a.turn(o)
		if err != nil {
			return took, err
		}
		took = append(took, ms)
	}
	return took, nil
}

// turn asks once.
func (a *asker) turn(o modelOrder) (ms float64, err error) {
	began := time.Now()
	answer, err := a.ask(o)
	if err != nil {
		return 0, err
	}
	if !o.Stream {
		defer answer.Close()
		return whole(answer, began)
	}
	s := &stream{lines: bufio.NewScanner(answer), began: began}
	if err := s.first(); err != nil || o.Hold {
		a.keep(answer)
		return s.ms, err
	}
	defer answer.Close()
	err = s.rest(paces[o.Model].tokens)
	a.count(s.tokens)
	return s.ms, err
}

// prompt is some pages of text, so that a program that parses requests has work to do.
var prompt = strings.Repeat("A sentence of the conversation so far. ", 100)

// maxTokens is the most that a request allows: clove reserves it.
const maxTokens = 300

func (a *asker) ask(o modelOrder) (io.ReadCloser, error) {
	body, err := json.Marshal(map[string]any{"model": o.Model, "stream": o.Stream, "max_tokens": maxTokens, "temperature": 0.5,
		"messages": []map[string]string{{"role": "system", "content": "Answer."}, {"role": "user", "content": prompt}}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, a.base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = a.header.Clone()
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // it is only shown
		return nil, fmt.Errorf("the answer has status %d: %s", answer.StatusCode, said)
	}
	return answer.Body, nil
}

// whole reads an answer without a stream.
func whole(answer io.Reader, began time.Time) (ms float64, err error) {
	text, err := io.ReadAll(answer)
	if err == nil && !bytes.Contains(text, content) {
		err = fmt.Errorf("the answer is %.200q", text)
	}
	return millis(time.Since(began)), err
}

func (a *asker) keep(answer io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = append(a.held, answer)
}

func (a *asker) count(tokens int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens += tokens
}

// stream is an answer that comes in events.
type stream struct {
	lines  *bufio.Scanner
	began  time.Time
	ms     float64 // to the first token, without the provider's part
	tokens int
}

// content is in each event that has a token, however a gateway orders its fields.
var content = []byte(`"content":"`)

// first reads until the first token.
func (s *stream) first() error {
	for s.lines.Scan() {
		_, text, found := bytes.Cut(s.lines.Bytes(), content)
		if !found {
			continue
		}
		took := time.Since(s.began)
		text, _, _ = bytes.Cut(text, []byte(`"`))
		theirs, err := strconv.ParseInt(string(text), 10, 64)
		s.ms, s.tokens = millis(took-time.Duration(theirs)*time.Microsecond), 1
		return err
	}
	return errors.Join(errors.New("the stream has no token"), s.lines.Err())
}

// rest reads to the end, where the connection can be used again. The stream must be whole,
// with so many tokens.
func (s *stream) rest(tokens int) error {
	ended := false
	for s.lines.Scan() {
		line := s.lines.Bytes()
		ended = ended || bytes.HasSuffix(line, []byte(endOfStream))
		if bytes.Contains(line, content) {
			s.tokens++
		}
	}
	if err := s.lines.Err(); err != nil {
		return err
	}
	if !ended || s.tokens != tokens {
		return fmt.Errorf("the stream ends with %d of %d tokens", s.tokens, tokens)
	}
	return nil
}
