package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// stream puts the pieces of an answer together, in either format.
type stream struct {
	text func(string)

	content strings.Builder
	calls   []*pendingCall
	bytes   int // kept
	raw     int // read
	usage   *Usage
	ended   bool // the provider has said why the answer ends
	cut     bool // and that was the maximum of output
	over    bool // nothing more is read
}

type pendingCall struct {
	index     int // by which pieces name it
	id, name  string
	arguments strings.Builder
}

// read takes events until the stream ends. alive is called for each line.
func (s *stream) read(body io.Reader, f format, alive func()) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	lines.Split(wholeLines)
	for !s.over && lines.Scan() {
		alive()
		if s.raw += len(lines.Bytes()); s.raw > maxStream {
			return &Failure{Message: fmt.Sprintf("the model's answer has taken more than %d bytes", maxStream)}
		}
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		data = bytes.TrimSpace(data)
		if !is || len(data) == 0 {
			continue // a comment, or another field
		}
		if err := f.event(s, data); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &Failure{Message: fmt.Sprintf("an event of the model's answer is larger than %d bytes", maxLine)}
	case err != nil:
		return &Failure{Message: "the model's answer broke off: " + err.Error(), again: true}
	case !s.ended:
		return &Failure{Message: "the model's answer broke off", again: true}
	}
	return nil
}

// wholeLines is a bufio.SplitFunc that leaves out a last line that broke off.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

func decode(data []byte, event any) error {
	if err := json.Unmarshal(data, event); err != nil {
		return &Failure{Message: "the model's answer has an event that is not as the format has it: " + err.Error()}
	}
	return nil
}

// say adds text.
func (s *stream) say(text string) error {
	if err := s.grow(len(text)); err != nil || text == "" {
		return err
	}
	s.content.WriteString(text)
	s.text(text)
	return nil
}

// begin adds a call.
func (s *stream) begin(index int) error {
	if len(s.calls) == maxCalls {
		return &Failure{Message: fmt.Sprintf("the model's answer has more than %d tool calls", maxCalls)}
	}
	s.calls = append(s.calls, &pendingCall{index: index})
	return nil
}

// add adds a piece to a call.
func (s *stream) add(c *pendingCall, id string, piece Function) error {
	if err := s.grow(len(id) + len(piece.Name) + len(piece.Arguments)); err != nil {
		return err
	}
	c.id += id
	c.name += piece.Name
	c.arguments.WriteString(piece.Arguments)
	return nil
}

// grow counts what is kept, and refuses more than an answer may have.
func (s *stream) grow(bytes int) error {
	if s.bytes += bytes; s.bytes > MaxAnswer {
		return &Failure{Message: fmt.Sprintf("the model's answer is larger than %d bytes", MaxAnswer)}
	}
	return nil
}

// answer is what there is so far.
func (s *stream) answer() Answer {
	a := Answer{Message: Message{Role: RoleAssistant, Content: s.content.String()}, Usage: s.usage, Cut: s.cut}
	for i, c := range s.calls {
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d", i)
		}
		a.Message.ToolCalls = append(a.Message.ToolCalls, ToolCall{ID: c.id, Type: "function", Function: Function{Name: c.name, Arguments: c.arguments.String()}})
	}
	return a
}
