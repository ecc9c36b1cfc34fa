package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// mailbox is a Kernel with one mailbox, which answers the calls of streams.
type mailbox struct {
	Kernel // none: no other method is called
	sent   []api.MailSendParams
	full   atomic.Bool
	refuse error
	have   []api.Mail
	acked  []api.MailAckParams
}

func (b *mailbox) Call(ctx context.Context, _ agent.ID, method string, text json.RawMessage) (json.RawMessage, error) {
	switch method {
	case agents.MailSend.Name:
		if b.full.Load() {
			return nil, api.Failure(api.CodeBusy, "", "full")
		}
		if b.refuse != nil {
			return nil, b.refuse
		}
		var p api.MailSendParams
		err := json.Unmarshal(text, &p)
		b.sent = append(b.sent, p)
		return json.RawMessage("{}"), err
	case agents.MailReceive.Name:
		if len(b.have) == len(b.acked) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return json.Marshal(api.MailReceiveResult{Messages: b.have[len(b.acked):][:1]})
	default:
		var p api.MailAckParams
		err := json.Unmarshal(text, &p)
		b.acked = append(b.acked, p)
		return json.RawMessage("{}"), err
	}
}

func joined(t *testing.T, b *mailbox, k agent.Kernel) *mailStreams {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return newMailStreams(&share{kernel: b, ctx: ctx}, agent.Spec{Kernel: k}, nil)
}

// Each line is a message, however it is cut into writes, with a key of its own; what no message can carry is
// counted, and the lines behind it are sent.
func TestLinesAreMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", api.BodyMost)
	for _, row := range []struct {
		to, text, want string
		refused        int64
	}{
		{"mail:a", "one\ntw|o\n\nthree", `"one" "two" "" "three"`, 0},
		{"mail:a", `{"a":1}` + "\n<\xff>\n", `"{\"a\":1}" "\u003c\ufffd\u003e"`, 0},
		{"mail:a", long + "\n" + long + "|" + long + "\nend\n", `"end"`, 2},
		{"mail:a", strings.Repeat("<", api.BodyMost/3) + "\nend", `"end"`, 1}, // each has six bytes in JSON
		{"mail:a,json", "{\"a\": 1}\nno\n\n\"\xff\"\n[2]\n", `{"a":1} [2]`, 3},
	} {
		box := &mailbox{}
		m := joined(t, box, agent.Kernel{StdoutTo: row.to})
		for part := range strings.SplitSeq(row.text, "|") {
			if n, err := m.out.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		m.out.finish()
		var bodies []string
		keys := map[string]bool{}
		for _, p := range box.sent {
			bodies = append(bodies, string(p.Body))
			keys[p.Key] = true
		}
		if got := strings.Join(bodies, " "); got != row.want || len(keys) != len(bodies) {
			t.Errorf("%.20q: %s, %d keys", row.text, got, len(keys))
		}
		if u := m.used(); u.Sent != int64(len(bodies)) || u.Refused != row.refused {
			t.Errorf("%.20q: %+v", row.text, u)
		}
	}
}

// A full mailbox holds the writer, which the record says; one with place does not (the control). A receiver that
// is not there ends the pipe.
func TestAFullMailboxHoldsTheWriter(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	m := joined(t, box, agent.Kernel{StdoutTo: "mail:a"})
	if _, err := m.out.Write([]byte("control\n")); err != nil || m.used().WaitedMS != 0 {
		t.Fatal(err, m.used())
	}
	box.full.Store(true)
	written := make(chan error, 1)
	go func() { _, err := m.out.Write([]byte("line\n")); written <- err }()
	select {
	case err := <-written:
		t.Fatal("it did not wait", err)
	case <-time.After(100 * time.Millisecond):
	}
	box.full.Store(false)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if u := m.used(); u.Sent != 2 || u.WaitedMS < 40 {
		t.Errorf("%+v", u)
	}
	box.refuse = api.Failure(api.CodeNotFound, "", "no receiver")
	if _, err := m.out.Write([]byte("lost\n")); !errors.Is(err, unix.EPIPE) || m.used().Unsent != 1 {
		t.Error(err, m.used())
	}
}

// The end of an agent bounds the wait: what is left is counted.
func TestTheEndBoundsTheWait(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	box.full.Store(true)
	m := joined(t, box, agent.Kernel{StdoutTo: "mail:a"})
	m.hurry(false)
	began := time.Now()
	if _, err := m.out.Write([]byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	if u := m.used(); u.Unsent != 2 || u.Sent != 0 || time.Since(began) > 5*time.Second || u.WaitedMS < 500 {
		t.Errorf("%+v after %s", u, time.Since(began))
	}
}

// A message is a line, and acknowledged when it is written; none is taken before the agent executes, or for a pipe
// that is closed. What no line can carry is rejected.
func TestMessagesAreLines(t *testing.T) {
	t.Parallel()
	all := []api.Mail{{ID: "1", Body: json.RawMessage(`"one"`)}, {ID: "2", Body: json.RawMessage(`"a\nb"`)}, {ID: "3", Body: json.RawMessage(`{"a":1}`)}, {ID: "4", Blob: &api.Blob{}}}
	for from, want := range map[string]struct {
		text    string
		rejects int64
	}{"mail:a": {"one\n{\"a\":1}\n", 2}, "mail:a,json": {"\"one\"\n\"a\\nb\"\n{\"a\":1}\n", 1}} {
		box := &mailbox{have: all}
		m := joined(t, box, agent.Kernel{StdinFrom: from})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		m.in.ctx = ctx
		m.begin()
		var text bytes.Buffer
		m.feed(&text, func() {})
		cancel()
		if u := m.used(); text.String() != want.text || u.Rejected != want.rejects || u.Received != int64(len(all))-want.rejects || len(box.acked) != len(all) {
			t.Errorf("%s: %q, %+v, %d acknowledged", from, &text, u, len(box.acked))
		}
	}
	box := &mailbox{have: all}
	m := joined(t, box, agent.Kernel{StdinFrom: "mail:a"})
	m.begin()
	m.feed(closedPipe{}, func() {})
	if len(box.acked) != 0 || m.used().Received != 0 {
		t.Errorf("%d acknowledged", len(box.acked))
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, unix.EPIPE }
