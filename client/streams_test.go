package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// A caller may stop reading a stream, and gets its own error back.
func TestStreamEndsWithItsReader(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(c *rpc.Conn, _ rpc.Message) (any, error) {
		for {
			if err := c.Notify(api.NoteLogLine, api.LogNote{ID: 1, Line: api.LogLine{Text: "x"}}); err != nil {
				return nil, nil
			}
		}
	})
	enough, seen := errors.New("enough"), 0
	err := dial(t, path).Logs(context.Background(), api.LogsParams{}, func([]api.LogLine) error {
		if seen++; seen == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 3 {
		t.Errorf("%v after %d", err, seen)
	}
}

// Logs asks for many lines at once, CopyOut and Open with the parameters that they were given.
func TestStreamsAndSessionsSendParameters(t *testing.T) {
	t.Parallel()
	c, got := asks(t, api.AttachResult{Detached: true})
	ctx, n := context.Background(), api.RunParams{Run: "n"}
	for _, row := range []struct {
		want string
		call func() error
	}{
		{`run.logs{"run":"n","many":true}`, func() error {
			return c.Logs(ctx, api.LogsParams{RunParams: n}, func([]api.LogLine) error { return nil })
		}},
		{`run.copy_out{"run":"n","path":"/p"}`, func() error { return c.CopyOut(ctx, "n", "/p", io.Discard) }},
		{`run.attach{"run":"n"}`, func() error { return answered(Open(ctx, c, methods.RunAttach, api.AttachParams{RunParams: n})) }},
		{`run.attach{"run":"n","foreground":true}`, func() error { return answered(c.Foreground(ctx, api.AttachParams{RunParams: n})) }},
	} {
		err := row.call()
		if m := <-got; err != nil || m.Method+string(m.Params) != row.want {
			t.Errorf("%s: %v, asked %s %s", row.want, err, m.Method, m.Params)
		}
	}
}

// answered waits for the end of a session that detaches at once.
func answered(s *Session, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	var result api.AttachResult
	if err = s.Answer(context.Background(), &result, func(api.SessionOutput) error { return nil }); err == nil && !result.Detached {
		err = errors.New("the result is lost")
	}
	return err
}

// A copy that is refused ends, also if its source never ends; a copy whose source fails is not
// taken as complete.
func TestCopyIn(t *testing.T) {
	t.Parallel()
	refused := make(chan bool, 1)
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		var p api.CopyParams
		if err := json.Unmarshal(m.Params, &p); err != nil || p.Path == "/bad" {
			return nil, &agent.Error{Kind: agent.KindNotFound, Message: "there is no such folder"}
		}
		for {
			m, err := c.Receive()
			if err != nil || m.Method == api.NoteCloseInput {
				refused <- err != nil
				return api.Nothing{}, nil
			}
		}
	})
	c, ctx := dial(t, path), context.Background()
	silent, writer := io.Pipe()
	defer writer.Close()
	if err := c.CopyIn(ctx, "n", "/bad", silent); agent.KindOf(err) != agent.KindNotFound || err == nil {
		t.Errorf("%v", err)
	}
	broken := errors.New("the disk is gone")
	source, feed := io.Pipe()
	go func() {
		_, _ = feed.Write([]byte("half"))
		feed.CloseWithError(broken)
	}()
	if err := c.CopyIn(ctx, "n", "/good", source); !errors.Is(err, broken) || !<-refused {
		t.Errorf("%v", err)
	}
	if err := c.CopyIn(ctx, "n", "/good", strings.NewReader("whole")); err != nil || <-refused {
		t.Errorf("%v", err)
	}
}
