package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

func pair(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	a, b := net.Pipe()
	left, right := New(a), New(b)
	t.Cleanup(func() { left.Close(); right.Close() })
	return left, right
}

func fault(text json.RawMessage) error { return errors.New(string(text)) }

func TestCallAndNotes(t *testing.T) {
	t.Parallel()
	caller, server := pair(t)
	go func() {
		m, _ := server.Receive()
		server.Notify("half", map[string]int{"n": 1})
		server.Respond(m.ID, json.RawMessage(m.Params), nil)
		m, _ = server.Receive()
		server.Respond(m.ID, nil, map[string]string{"message": "no"})
	}()
	if err := caller.Request("echo", []int{7}); err != nil {
		t.Fatal(err)
	}
	var result []int
	var notes []string
	err := caller.Answer(context.Background(), &result, func(m Message) error { notes = append(notes, m.Method); return nil }, fault)
	if err != nil || len(result) != 1 || result[0] != 7 || len(notes) != 1 || notes[0] != "half" {
		t.Errorf("%v, %v, %v", err, result, notes)
	}
	if err := caller.Request("fail", nil); err != nil {
		t.Fatal(err)
	}
	if err := caller.Answer(context.Background(), nil, nil, fault); err == nil || err.Error() != `{"message":"no"}` {
		t.Errorf("%v", err)
	}
}

func TestAnswerEnds(t *testing.T) {
	t.Parallel()
	caller, server := pair(t)
	server.Close()
	if err := caller.Answer(context.Background(), nil, nil, fault); !errors.Is(err, ErrGone) {
		t.Errorf("the other side has gone: %v", err)
	}
	caller, _ = pair(t)
	ctx, leave := context.WithCancel(context.Background())
	leave()
	if err := caller.Answer(ctx, nil, nil, fault); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller has enough: %v", err)
	}
	caller, server = pair(t)
	go server.Notify("note", nil)
	stop := errors.New("stop")
	if err := caller.Answer(context.Background(), nil, func(Message) error { return stop }, fault); !errors.Is(err, stop) {
		t.Errorf("the reader of notes has enough: %v", err)
	}
}

func TestLineIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent, want string
		limit      int
		err        error
	}{
		{"abc\nrest", "abc", 10, nil},
		{strings.Repeat("x", 9) + "\n", strings.Repeat("x", 9), 10, nil},
		{strings.Repeat("x", 10) + "\n", "", 10, ErrTooLong},
		{strings.Repeat("x", 100000), "", 50000, ErrTooLong},
		{strings.Repeat("x", 20000) + "\n", strings.Repeat("x", 20000), 50000, nil},
		{"no end", "", 10, io.ErrUnexpectedEOF},
		{"", "", 10, io.EOF},
	} {
		caller, server := pair(t)
		go func() { io.WriteString(server, c.sent); server.Close() }()
		line, err := caller.Line(c.limit)
		if string(line) != c.want || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%.20q: %.20q, %v", c.sent, line, err)
		}
	}
}

func TestBufferedIsWhatWasReadAhead(t *testing.T) {
	t.Parallel()
	caller, server := pair(t)
	go io.WriteString(server, "first\nsecond")
	if line, err := caller.Line(100); string(line) != "first" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if rest := string(caller.Buffered()); rest != "second" {
		t.Errorf("%q", rest)
	}
}

// A long notification is split without decoding its parameters, only in the form in which
// cloved writes it.
func TestLongNote(t *testing.T) {
	t.Parallel()
	params := `{"x":"` + strings.Repeat("y", longNoteBytes) + `\",\"params\":"}`
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","method":"a.b","params":` + params + `}`:           true,
		`{"jsonrpc":"2.0","method":"a.b","params":{}}`:                       false,
		`{"jsonrpc":"2.0","id":1,"method":"a.b","params":` + params + `}`:    false,
		`{"jsonrpc":"2.0","method":"a\u0062","params":` + params + `}`:       false,
		`{"jsonrpc":"2.0","method":"a","id":1,"params":` + params + `}`:      false,
		`{"jsonrpc":"2.0","method":"a.b","params":` + params:                 true, // the reader of the parameters notices that they are invalid
		`{"jsonrpc":"2.0","method":"` + strings.Repeat("a", longNoteBytes):   false,
		`{"jsonrpc":"2.0","id":1,"result":{"method":"a","params":1},"x":""}`: false,
	} {
		m, is := longNote([]byte(line))
		if is != want || is && strings.HasSuffix(line, "}}") && (m.Method != "a.b" || string(m.Params) != params) {
			t.Errorf("%.60s: %v, %q", line, is, m.Method)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, b := net.Pipe()
		c := New(a)
		defer c.Close()
		go func() { b.Write(text); b.Close() }()
		for {
			if _, err := c.Receive(); err != nil && !strings.Contains(err.Error(), "cannot read a message") {
				return
			}
		}
	})
}

// Closing a listener resets connections that were not accepted: for the client the other side
// has gone, and nothing failed.
func TestAResetIsAnEnd(t *testing.T) {
	t.Parallel()
	for _, err := range []error{ErrGone, syscall.EPIPE, fmt.Errorf("read: %w", syscall.ECONNRESET)} {
		if !IsGone(err) {
			t.Errorf("%v", err)
		}
	}
	if IsGone(nil) || IsGone(syscall.EACCES) {
		t.Error("everything has gone")
	}
}
