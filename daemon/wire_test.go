package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// say sends lines unchanged.
func say(t *testing.T, c *rpc.Conn, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
}

// hear returns the next message.
func hear(t *testing.T, c *rpc.Conn) rpc.Message {
	t.Helper()
	m, err := c.Receive()
	must(t, err)
	ofTheSet(t, m)
	return m
}

// ofTheSet checks that an error has a code of the API's closed set, that code's word, a
// message and a hint.
func ofTheSet(t *testing.T, m rpc.Message) {
	t.Helper()
	if m.Error == nil {
		return
	}
	fault := api.ParseError(m.Error)
	for _, row := range api.Codes {
		if row.Code == fault.Code && row.Word == fault.Data.Word && fault.Message != "" && fault.Data.Hint != "" {
			return
		}
	}
	t.Errorf("an error that is not of the set: %s", m.Error)
}

func codeOf(m rpc.Message) api.Code {
	if m.Error == nil {
		return 0
	}
	return api.ParseError(m.Error).Code
}

const ping = `{"jsonrpc":"2.0","id":"ping","method":"daemon.info"}`

// Every request gets an answer of the closed set, and the connection continues.
func TestTorture(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	say(t, c, ping) // a session must be the first request of a connection
	hear(t, c)
	for what, row := range map[string]struct {
		line string
		code api.Code
		id   string
	}{
		"no JSON":             {`hello`, api.CodeParse, "null"},
		"half":                {`{"jsonrpc":"2.0","id":1`, api.CodeParse, "null"},
		"two":                 {ping + ping, api.CodeParse, "null"},
		"a number":            {`17`, api.CodeParse, "null"},
		"a string":            {`"daemon.info"`, api.CodeParse, "null"},
		"null":                {`null`, api.CodeParse, "null"},
		"bad UTF-8 number":    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.info\",\"params\":{\"x\":1e999999}}", api.CodeParams, "1"},
		"too deep":            {`{"jsonrpc":"2.0","id":1,"method":"daemon.info","params":` + deep(70) + `}`, api.CodeParse, "null"},
		"deep enough":         {`{"jsonrpc":"2.0","id":1,"method":"daemon.info","params":{"x":` + deep(60) + `}}`, api.CodeParams, "1"},
		"keys twice":          {`{"jsonrpc":"2.0","id":1,"id":2,"method":"daemon.info"}`, api.CodeParse, "null"},
		"keys twice below":    {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"a","run":"b"}}`, api.CodeParse, "null"},
		"no version":          {`{"id":1,"method":"daemon.info"}`, api.CodeRequest, "1"},
		"another version":     {`{"jsonrpc":"1.0","id":1,"method":"daemon.info"}`, api.CodeRequest, "1"},
		"no method":           {`{"jsonrpc":"2.0","id":1}`, api.CodeRequest, "1"},
		"method of no string": {`{"jsonrpc":"2.0","id":1,"method":5}`, api.CodeParse, "1"},
		"unknown method":      {`{"jsonrpc":"2.0","id":1,"method":"run.fly"}`, api.CodeMethod, "1"},
		"built in":            {`{"jsonrpc":"2.0","id":1,"method":"rpc.serverInfo"}`, api.CodeMethod, "1"},
		"params of no object": {`{"jsonrpc":"2.0","id":1,"method":"daemon.info","params":"x"}`, api.CodeRequest, "1"},
		"params by position":  {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":["x"]}`, api.CodeParams, "1"},
		"unknown parameter":   {`{"jsonrpc":"2.0","id":1,"method":"run.list","params":{"everything":true}}`, api.CodeParams, "1"},
		"another key":         {`{"jsonrpc":"2.0","id":1,"method":"daemon.info","auth":"root"}`, api.CodeRequest, "1"},
		"id of an object":     {`{"jsonrpc":"2.0","id":{},"method":"daemon.info"}`, api.CodeRequest, "null"},
		"id of a fraction":    {`{"jsonrpc":"2.0","id":1.5,"method":"daemon.info"}`, 0, "1.5"},
		"id negative":         {`{"jsonrpc":"2.0","id":-1,"method":"daemon.info"}`, 0, "-1"},
		"id huge":             {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"daemon.info"}`, 0, "123456789012345678901234567890"},
		"id of a string":      {`{"jsonrpc":"2.0","id":"ü\u0000","method":"daemon.info"}`, 0, `"ü\u0000"`},
		"session not first":   {`{"jsonrpc":"2.0","id":1,"method":"run.attach","params":{"run":"x"}}`, api.CodeSession, "1"},
		"no run":              {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{}}`, api.CodeParams, "1"},
		"another's run":       {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"no-such-run"}}`, api.CodeNotFound, "1"},
		"empty batch":         {`[]`, api.CodeRequest, "null"},
		"bad UTF-8":           {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run.get\",\"params\":{\"run\":\"\xff\"}}", api.CodeParse, "null"},
		"a NUL":               {"{\"jsonrpc\":\"2.0\",\x00\"id\":1,\"method\":\"daemon.info\"}", api.CodeParse, "null"},
		"an escaped NUL":      {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"\u0000"}}`, api.CodeNotFound, "1"},
		"CRLF":                {ping + "\r", 0, `"ping"`},
		"keys in two cases":   {`{"jsonrpc":"2.0","id":1,"method":"run.get","METHOD":"daemon.info","params":{"run":"a"}}`, api.CodeParse, "null"},
		"params in two cases": {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"a","Run":"b"}}`, api.CodeParse, "null"},
		"much of little":      {`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"` + strings.Repeat("x", maxSmall) + `"}}`, api.CodeTooLarge, "1"},
		"id of a list":        {`{"jsonrpc":"2.0","id":[1],"method":"daemon.info"}`, api.CodeRequest, "null"},
		"id of a truth":       {`{"jsonrpc":"2.0","id":true,"method":"daemon.info"}`, api.CodeRequest, "null"},
		"cancel of nothing":   {`{"jsonrpc":"2.0","id":1,"method":"request.cancel","params":{"id":"never"}}`, 0, "1"},
		"cancel of itself":    {`{"jsonrpc":"2.0","id":1,"method":"request.cancel","params":{"id":1}}`, 0, "1"},
		"cancel without id":   {`{"jsonrpc":"2.0","id":1,"method":"request.cancel","params":{"ids":1}}`, api.CodeParams, "1"},
		"spaces":              {"  \t" + ping + "  ", 0, `"ping"`},
	} {
		say(t, c, row.line)
		m := hear(t, c)
		if m.Error != nil && api.ParseError(m.Error).Data.Word == "" {
			t.Errorf("%s: an error without a word: %s", what, m.Error)
		}
		if code := codeOf(m); code != row.code || string(m.ID) != row.id && string(m.ID) != "" {
			t.Errorf("%s: code %d, id %s, %s; want %d, %s", what, code, m.ID, m.Error, row.code, row.id)
		}
		say(t, c, "", "   ", ping)
		if m := hear(t, c); m.Error != nil || string(m.ID) != `"ping"` {
			t.Fatalf("%s: the connection does not go on: %+v", what, m)
		}
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	say(t, c, `[`+ping+`,{"jsonrpc":"2.0","method":"daemon.info"},{"jsonrpc":"2.0","id":2,"method":"run.fly"},5]`)
	line, err := c.Line(rpc.MaxLine)
	must(t, err)
	var answers []rpc.Message
	must(t, json.Unmarshal(line, &answers))
	if len(answers) != 3 {
		t.Errorf("%d answers to three calls and a notification: %s", len(answers), line)
	}
	say(t, c, "["+strings.TrimSuffix(strings.Repeat(ping+",", maxBatch+1), ",")+"]")
	if code := codeOf(hear(t, c)); code != api.CodeTooLarge {
		t.Errorf("a large batch: %d", code)
	}
}

// Notifications are handled in order and never answered.
func TestNotifications(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	for range 500 {
		say(t, c, `{"jsonrpc":"2.0","method":"daemon.drain","params":{"on":true}}`, `{"jsonrpc":"2.0","method":"nothing.at.all"}`)
	}
	say(t, c, `[{"jsonrpc":"2.0","method":"daemon.drain","params":{"on":false}},{"jsonrpc":"2.0","method":"daemon.drain","params":{"on":true}}]`, ping)
	m := hear(t, c)
	var info api.InfoResult
	must(t, json.Unmarshal(m.Result, &info))
	if !info.Draining {
		t.Error("the last notification was not done")
	}
}

// An endless line ends its connection; other connections are not affected.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c, other := r.dial(), r.dial()
	go func() {
		part := []byte(strings.Repeat("x", 1<<20))
		for {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	}()
	if code := codeOf(hear(t, c)); code != api.CodeTooLarge {
		t.Errorf("code %d", code)
	}
	say(t, other, ping)
	if m := hear(t, other); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}

// Requests above the limit of concurrent ones wait; all are answered.
func TestFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	c := r.dial()
	const many = 5000
	go func() {
		for i := range many {
			if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%d,"method":"run.list"}`+"\n", i); err != nil {
				return
			}
		}
	}()
	seen := map[string]bool{}
	for range many {
		m := hear(t, c)
		if seen[string(m.ID)] || m.Error != nil {
			t.Fatalf("%s: twice, or %s", m.ID, m.Error)
		}
		seen[string(m.ID)] = true
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("long", rootCaller.owner, "running")
	r.serve()
	c := r.dial()
	say(t, c, `{"jsonrpc":"2.0","id":"w","method":"run.wait","params":{"run":"long"}}`, `{"jsonrpc":"2.0","id":"c","method":"request.cancel","params":{"id":"w"}}`)
	for range 2 {
		m := hear(t, c)
		if want := map[string]api.Code{`"w"`: api.CodeCancelled, `"c"`: 0}[string(m.ID)]; codeOf(m) != want {
			t.Errorf("%s: %s", m.ID, m.Error)
		}
	}
	// The same as a notification.
	say(t, c, `{"jsonrpc":"2.0","id":"w","method":"event.follow","params":{"follow":true}}`, `{"jsonrpc":"2.0","method":"request.cancel","params":{"id":"w"}}`)
	if m := hear(t, c); codeOf(m) != api.CodeCancelled {
		t.Errorf("%+v", m)
	}
}

// A caller that disconnects in the middle leaves nothing behind: the daemon ends at once.
func TestHalfFrameAndGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("long", rootCaller.owner, "running")
	r.serve()
	c := r.dial()
	say(t, c, `{"jsonrpc":"2.0","id":"w","method":"run.wait","params":{"run":"long"}}`)
	if _, err := c.Write([]byte(`{"jsonrpc":"2.0","id":`)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	began := time.Now()
	t.Cleanup(func() {
		if took := time.Since(began); took > patience {
			t.Errorf("it took %v to forget a caller that left", took)
		}
	})
}

// TestStrangersAreRefused: the mode of the socket keeps them out, and if that was changed, the
// credentials that the kernel reports.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(&Daemon{}, 50)
	if fault := s.enter(nil, otherCaller); fault == nil || fault.Code != api.CodeDenied {
		t.Errorf("%v", fault)
	}
	member := otherCaller
	member.groups = []uint32{50}
	for i := range maxConnectionsEach {
		if fault := s.enter(new(conversation), member); fault != nil {
			t.Fatalf("connection %d: %v", i, fault)
		}
	}
	if fault := s.enter(new(conversation), member); fault == nil || fault.Code != api.CodeBusy {
		t.Errorf("one too many: %v", fault)
	}
	if fault := s.enter(new(conversation), rootCaller); fault != nil {
		t.Errorf("root is kept out by others: %v", fault)
	}
}

func FuzzExamine(f *testing.F) {
	f.Add([]byte(ping))
	f.Add([]byte(`[{"a":[1,{"b":null}]},2]`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if l, fault := read(line); fault == nil {
			if !json.Valid(line) || len(l.calls)+len(l.notes) == 0 {
				t.Errorf("%q is no JSON, or has no request", line)
			}
		}
	})
}
