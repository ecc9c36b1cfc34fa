package logs

import (
	"bytes"
	"time"
	"unicode/utf8"

	"clove.run/clove/api"
)

// maxLine is docker's: longer lines are cut.
const maxLine = 16 << 10

// Lines is an io.Writer that makes lines of what one stream says. pending is the beginning
// of a line whose end has not come, at most maxLine long.
type Lines struct {
	log     *Log
	stream  string
	pending []byte
}

// Stream returns the writer of one stream; it is for one goroutine.
func (l *Log) Stream(name string) *Lines { return &Lines{log: l, stream: name} }

// Write never fails.
func (s *Lines) Write(output []byte) (int, error) {
	length := len(output)
	for len(output) > 0 {
		end := bytes.IndexByte(output, '\n')
		room := maxLine - len(s.pending)
		switch {
		case end >= 0 && end <= room:
			s.emit(output[:end], false)
			output = output[end+1:]
		// Also where the line ends somewhere behind: the rest is an entry of its own, and
		// Partial says that the line goes on there.
		case len(output) > room:
			s.emit(output[:room], true)
			output = output[room:]
		default:
			s.pending = append(s.pending, output...)
			output = nil
		}
	}
	return length, nil
}

// Close writes a last line that has no end.
func (s *Lines) Close() error {
	if len(s.pending) > 0 {
		s.emit(nil, true)
	}
	return nil
}

// emit writes one line, of what was pending and the rest. Text that is not UTF-8 goes as
// bytes (base64), because JSON could not have it unchanged.
func (s *Lines) emit(rest []byte, partial bool) {
	content := append(s.pending, rest...)
	line := api.LogLine{Time: time.Now().UTC(), Stream: s.stream, Partial: partial}
	if utf8.Valid(content) {
		line.Text = string(content)
	} else {
		line.Bytes = content
	}
	s.log.write(line)
	// write has encoded the line when it returns, so the buffer is free.
	s.pending = s.pending[:0]
}
