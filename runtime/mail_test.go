package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	refuse atomic.Pointer[api.Error]
	calls  atomic.Int64
	have   []api.Mail
	acked  []api.MailAckParams
}

func (b *mailbox) Call(ctx context.Context, _ agent.ID, method string, text json.RawMessage) (json.RawMessage, error) {
	switch method {
	case agents.MailSend.Name:
		b.calls.Add(1)
		if refusal := b.refuse.Load(); refusal != nil {
			return nil, refusal
		}
		var p api.MailSendParams
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, err
		}
		began, waited := time.Now(), time.Duration(0)
		for b.full.Load() {
			if waited = time.Since(began); waited.Milliseconds() >= p.WaitMS {
				return nil, p.WaitOver()
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return nil, api.Failure(api.CodeCancelled, "", "cancelled")
			}
		}
		b.sent = append(b.sent, p)
		return json.Marshal(api.MailSendResult{WaitedMS: waited.Milliseconds()})
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
		{"mail:a", `{"a":1}` + "\n<\xff>\n<é>\n", `"{\"a\":1}" "\u003cé\u003e"`, 1},
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
			if cap(m.out.line) > 2*api.BodyMost {
				t.Errorf("%.20q: a line keeps %d bytes", row.text, cap(m.out.line))
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
	if u := m.used(); u.Sent != 2 || u.WaitedMS < 40 || box.calls.Load() != 2 {
		t.Errorf("%+v, %d calls", u, box.calls.Load())
	}
	box.refuse.Store(api.Failure(api.CodeNotFound, "", "no receiver"))
	if _, err := m.out.Write([]byte("lost\nalso\n")); !errors.Is(err, unix.EPIPE) || m.used().Unsent != 2 || !strings.Contains(m.used().Error, "line 3 and those after it are not sent: no receiver") {
		t.Error(err, m.used())
	}
}

// While a budget is spent the line is tried seldom, and at once when the run's standing has changed.
func TestASpentBudgetHoldsTheWriter(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	box.refuse.Store(api.Failure(api.CodeBudget, "", "spent"))
	s := &share{kernel: box, ctx: t.Context(), standings: make(chan api.Standing, 1)}
	m := newMailStreams(s, agent.Spec{Kernel: agent.Kernel{StdoutTo: "mail:a"}}, nil)
	written := make(chan error, 1)
	go func() { _, err := m.out.Write([]byte("line\n")); written <- err }()
	time.Sleep(4 * time.Second) // without the bound by refusals there would be more calls
	if calls := box.calls.Load(); calls > 8 {
		t.Errorf("%d calls", calls)
	}
	box.refuse.Store(nil)
	for began := time.Now(); ; { // the news of one standing may have been there before the call
		s.changed(api.Standing{})
		select {
		case err := <-written:
			if u := m.used(); err != nil || u.Sent != 1 || u.WaitedMS < 3000 || time.Since(began) > 30*time.Second {
				t.Errorf("%v, %+v after %s", err, u, time.Since(began))
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Faults of cloved end the stream after a while, and the record says why. One that is over before does not.
func TestFaultsEndAStream(t *testing.T) {
	t.Parallel()
	for _, code := range []api.Code{api.CodeInternal, api.CodeStorage} {
		box := &mailbox{}
		box.refuse.Store(api.Failure(code, "", "broken"))
		m := joined(t, box, agent.Kernel{StdoutTo: "mail:a"})
		m.faulty = 100 * time.Millisecond
		if _, err := m.out.Write([]byte("one\n")); !errors.Is(err, unix.EPIPE) || box.calls.Load() < 2 || m.used().Error == "" {
			t.Errorf("%v, %d calls, %+v", err, box.calls.Load(), m.used())
		}
		over := joined(t, box, agent.Kernel{StdoutTo: "mail:a"})
		time.AfterFunc(100*time.Millisecond, func() { box.refuse.Store(nil) })
		if _, err := over.out.Write([]byte("two\n")); err != nil || over.used().Sent != 1 || over.used().Error != "" {
			t.Errorf("%v, %+v", err, over.used())
		}
	}
}

// A reader of standard output that takes nothing, as a log on a full disk, keeps no line from the mailbox.
func TestAFullDiskKeepsNoLine(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	m := joined(t, box, agent.Kernel{StdoutTo: "mail:a"})
	for _, reader := range []io.Writer{fails{unix.ENOSPC}, fails{unix.EPIPE}, io.Discard} {
		_, err := tee{reader, m.out}.Write([]byte("line\n"))
		if errors.Is(err, unix.EPIPE) != (reader == fails{unix.EPIPE}) {
			t.Error(reader, err)
		}
	}
	if m.used().Sent != 2 {
		t.Errorf("%+v", m.used())
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
	fed := make(chan struct{})
	go func() { m.feed(fails{unix.EPIPE}, func() {}); close(fed) }()
	select {
	case <-fed:
	case <-time.After(time.Minute):
		t.Fatal("a closed pipe does not end the input")
	}
	if len(box.acked) != 0 || m.used().Received != 0 || m.used().Error != "" {
		t.Errorf("%d acknowledged, %+v", len(box.acked), m.used())
	}
}

// fails is a file that takes nothing.
type fails struct{ with error }

func (f fails) Write([]byte) (int, error) { return 0, f.with }
