package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// asks is a server that records the requests, and answers each with the same result.
func asks(t *testing.T, result any) (*Client, chan rpc.Message) {
	t.Helper()
	got := make(chan rpc.Message, 1)
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) { got <- m; return result, nil })
	return dial(t, path), got
}

func TestDoSendsParametersAndReadsTheResult(t *testing.T) {
	t.Parallel()
	c, got := asks(t, api.GrantResult{Grant: api.Grant{ID: "g1"}})
	given, err := Do(context.Background(), c, methods.GrantGive, api.GrantGiveParams{RunParams: api.RunParams{Run: "n"}, Grant: "tool:x"})
	if m := <-got; err != nil || given.Grant.ID != "g1" || m.Method != "grant.give" || string(m.Params) != `{"run":"n","grant":"tool:x"}` {
		t.Errorf("%+v, %v, asked %s %s", given, err, m.Method, m.Params)
	}
}

func TestPerformSendsParameters(t *testing.T) {
	t.Parallel()
	c, got := asks(t, api.Nothing{})
	err := Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "n"}, Force: true})
	if m := <-got; err != nil || m.Method != "run.remove" || string(m.Params) != `{"run":"n","force":true}` {
		t.Errorf("%v, asked %s %s", err, m.Method, m.Params)
	}
}

// An error of the server is returned as it is, with an empty result.
func TestDoReturnsTheError(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(*rpc.Conn, rpc.Message) (any, error) {
		return nil, api.Failure(api.CodeNotFound, "look", "there is no run")
	})
	c := dial(t, path)
	info, err := Do(context.Background(), c, methods.Info, api.Nothing{})
	var answered *api.Error
	if !errors.As(err, &answered) || answered.Code != api.CodeNotFound || agent.KindOf(err) != agent.KindNotFound || info.Version != "" {
		t.Errorf("%+v, %v", info, err)
	}
	err = Perform(context.Background(), c, methods.RunPause, api.RunParams{Run: "n"})
	if !errors.As(err, &answered) || answered.Code != api.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// Each passes every notification on, and returns the result that follows them.
func TestEachPassesNotifications(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		var p api.DiffParams
		if err := json.Unmarshal(m.Params, &p); err != nil || p.Run != "n" {
			return nil, api.Failure(api.CodeParams, "", "asked %s", m.Params)
		}
		for _, path := range []string{"a", "b"} {
			if err := c.Notify(api.NoteChange, api.ChangeNote{ID: 1, Change: agent.Change{Path: agent.RawString(path)}}); err != nil {
				return nil, err
			}
		}
		return api.DiffResult{Digest: "d"}, nil
	})
	var paths []string
	result, err := Each(context.Background(), dial(t, path), methods.RunDiff, api.DiffParams{RunParams: api.RunParams{Run: "n"}}, func(n api.ChangeNote) error {
		paths = append(paths, string(n.Change.Path))
		return nil
	})
	if err != nil || result.Digest != "d" || !slices.Equal(paths, []string{"a", "b"}) {
		t.Errorf("%v, %+v, %v", paths, result, err)
	}
}

// TestBytesThatAreNotUTF8AreRefused: nothing is sent. The controls are the replacement
// character itself, and the text of its escape.
func TestBytesThatAreNotUTF8AreRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"bad\xff": true, "a\"b\\\xfe": true, "\ufffd": false, `\ufffd`: false, `\\ufffd"`: false, "é": false} {
		c, got := asks(t, api.Nothing{})
		err := Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: text}})
		if (agent.KindOf(err) == agent.KindInvalid) != refused || (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
		var sent api.RemoveParams
		if refused {
			if len(got) > 0 {
				t.Errorf("%q: it was sent", text)
			}
		} else if m := <-got; json.Unmarshal(m.Params, &sent) != nil || sent.Run != text {
			t.Errorf("%q became %s", text, m.Params)
		}
	}
}
