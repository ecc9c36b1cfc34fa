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

// stream puts the pieces of an answer together.
type stream struct {
	text func(string)

	content strings.Builder
	calls   []*pendingCall
	bytes   int // kept
	raw     int // read
	usage   *Usage
	reason  string // empty: not over
}

type pendingCall struct {
	id, name  string
	arguments strings.Builder
}

// event is one event of a stream.
type event struct {
	Choices []struct {
		Delta struct {
			Content   string      `json:"content"`
			ToolCalls []callPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *Usage `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type callPiece struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// read takes events until the stream ends. alive is called for each line.
func (s *stream) read(body io.Reader, alive func()) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		alive()
		if s.raw += len(lines.Bytes()); s.raw > maxStream {
			return &Failure{Message: fmt.Sprintf("the model's answer has taken more than %d bytes", maxStream)}
		}
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		data = bytes.TrimSpace(data)
		if !is || len(data) == 0 {
			continue // a comment, or another field
		}
		if string(data) == "[DONE]" {
			break
		}
		if err := s.event(data); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &Failure{Message: fmt.Sprintf("an event of the model's answer is larger than %d bytes", maxLine)}
	case err != nil:
		return &Failure{Message: "the model's answer broke off: " + err.Error(), again: true}
	case s.reason == "":
		return &Failure{Message: "the model's answer broke off", again: true}
	}
	return nil
}

func (s *stream) event(data []byte) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return &Failure{Message: "the model's answer has an event that is no JSON: " + err.Error()}
	}
	if e.Error != nil {
		return &Failure{Message: fmt.Sprintf("the model's answer ended with an error: %.2000s", e.Error.Message), again: true}
	}
	if e.Usage != nil {
		s.usage = &Usage{In: max(e.Usage.In, 0), Out: max(e.Usage.Out, 0)}
	}
	if len(e.Choices) == 0 {
		return nil
	}
	choice := e.Choices[0]
	if choice.FinishReason != "" {
		s.reason = choice.FinishReason
	}
	if err := s.grow(len(choice.Delta.Content)); err != nil {
		return err
	}
	if choice.Delta.Content != "" {
		s.content.WriteString(choice.Delta.Content)
		s.text(choice.Delta.Content)
	}
	for _, piece := range choice.Delta.ToolCalls {
		if err := s.call(piece); err != nil {
			return err
		}
	}
	return nil
}

// call adds a piece to the call with its index.
func (s *stream) call(piece callPiece) error {
	if piece.Index < 0 || piece.Index > len(s.calls) || piece.Index >= maxCalls {
		return &Failure{Message: fmt.Sprintf("the model's answer has tool call %d, and may have %d in order", piece.Index, maxCalls)}
	}
	if piece.Index == len(s.calls) {
		s.calls = append(s.calls, &pendingCall{})
	}
	if err := s.grow(len(piece.ID) + len(piece.Function.Name) + len(piece.Function.Arguments)); err != nil {
		return err
	}
	c := s.calls[piece.Index]
	c.id += piece.ID
	c.name += piece.Function.Name
	c.arguments.WriteString(piece.Function.Arguments)
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
	a := Answer{Message: Message{Role: RoleAssistant, Content: s.content.String()}, Usage: s.usage, Cut: s.reason == "length"}
	for i, c := range s.calls {
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d", i)
		}
		a.Message.ToolCalls = append(a.Message.ToolCalls, ToolCall{ID: c.id, Type: "function", Function: Function{Name: c.name, Arguments: c.arguments.String()}})
	}
	return a
}
