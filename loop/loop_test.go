package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/loop/conversation"
	"clove.run/clove/loop/model"
	"clove.run/clove/loop/order"
	"clove.run/clove/loop/tools"
)

// rig is a loop whose model answers by a function.
type rig struct {
	t      *testing.T
	dir    string
	answer func(messages []model.Message) model.Message
	order  order.Order
	log    bytes.Buffer
	calls  int
}

func newRig(t *testing.T, answer func([]model.Message) model.Message) *rig {
	return &rig{t: t, dir: t.TempDir(), answer: answer, order: order.Order{Model: "m", Iterations: 10, Context: order.Context}}
}

// turn starts a loop anew, as the program is, for one prompt.
func (r *rig) turn(ctx context.Context, prompt string) (string, error) {
	r.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet { // it does not say in which format the model is served
			http.NotFound(w, q)
			return
		}
		var body struct{ Messages []model.Message }
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			r.t.Error(err)
		}
		r.calls++
		m := r.answer(body.Messages)
		delta := map[string]any{"content": m.Content}
		var calls []any
		for i, c := range m.ToolCalls {
			calls = append(calls, map[string]any{"index": i, "id": c.ID, "function": c.Function})
		}
		delta["tool_calls"] = calls
		text, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": delta, "finish_reason": "stop"}}})
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", text)
	}))
	defer server.Close()
	file, _, err := conversation.Open(r.file(), Overhead())
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	l := &Loop{Order: r.order, Model: &model.Client{URL: server.URL, Model: "m"}, Box: &tools.Box{Dir: r.dir}, File: file, Log: &r.log}
	return l.Turn(ctx, prompt)
}

func (r *rig) file() string { return filepath.Join(r.dir, ".clove", "c.jsonl") }

func calls(name, arguments string) model.Message {
	return model.Message{ToolCalls: []model.ToolCall{{ID: "x", Function: model.Function{Name: name, Arguments: arguments}}}}
}

func last(messages []model.Message) string { return messages[len(messages)-1].Content }

// The task of Clove C++'s run_task.
func TestATaskIsDone(t *testing.T) {
	r := newRig(t, func(m []model.Message) model.Message {
		switch at := last(m); {
		case strings.Contains(at, "Create"):
			return calls("write_file", `{"path": "hello.sh", "content": "echo Hello"}`)
		case strings.Contains(at, "wrote"):
			return calls("exec", `{"command": "sh hello.sh"}`)
		case strings.Contains(at, "Hello"):
			return calls("done", `{"answer": "it prints Hello"}`)
		}
		return model.Message{Content: "what?"}
	})
	if answer, err := r.turn(context.Background(), "Create it"); err != nil || answer != "it prints Hello" || r.calls != 3 {
		t.Fatalf("%q, %v", answer, err)
	}
	// A prompt after the end of a turn is a new turn, also the same.
	if answer, err := r.turn(context.Background(), "Create it"); err != nil || answer != "it prints Hello" || r.calls != 6 {
		t.Errorf("%q, %v", answer, err)
	}
}

// A turn has its answers once, however often it is started.
func TestIterationsAreBounded(t *testing.T) {
	r := newRig(t, func([]model.Message) model.Message { return calls("list", "{}") })
	for range 3 {
		if _, err := r.turn(context.Background(), "do it"); Status(err) != StatusIterations {
			t.Errorf("%v", err)
		}
	}
	if r.calls != r.order.Iterations {
		t.Errorf("%d answers", r.calls)
	}
	// The control: another prompt has its own.
	if _, _ = r.turn(context.Background(), "do that"); r.calls != 2*r.order.Iterations {
		t.Errorf("%d answers", r.calls)
	}
}

// A call that was interrupted has that as its result, and is not made again.
func TestAnInterruptedCall(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newRig(t, func(m []model.Message) model.Message {
		if strings.HasPrefix(last(m), "interrupted") {
			return model.Message{Content: "I see"}
		}
		return calls("exec", `{"command": "echo once >> made; sleep 60"}`)
	})
	made := filepath.Join(r.dir, "made")
	go func() {
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(made); len(text) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := r.turn(ctx, "do it"); Status(err) != StatusInterrupted {
		t.Fatal(err)
	}
	if answer, err := r.turn(context.Background(), "do it"); err != nil || r.calls != 2 || answer != "I see" {
		t.Errorf("%q, %v", answer, err)
	}
	if text, _ := os.ReadFile(made); string(text) != "once\n" {
		t.Errorf("it was made again: %q", text)
	}
	if text, _ := os.ReadFile(r.file()); strings.Count(string(text), `"content":"do it"`) != 1 {
		t.Errorf("%s", text)
	}
}

// A full conversation is summed up, the task goes on, and all of it is kept. A model that gives no
// summary ends the turn, and the conversation stays.
func TestAFullConversation(t *testing.T) {
	r := newRig(t, nil)
	r.order.Context, r.order.Iterations = 3000, 30
	summaries := 0
	r.answer = func(m []model.Message) model.Message {
		switch {
		case last(m) == sumUp:
			summaries++
			return model.Message{Content: "SUMMARY"}
		case summaries == 2:
			return model.Message{Content: last(m)}
		}
		return calls("exec", `{"command": "head -c 3000 /dev/zero | tr '\\0' x"}`)
	}
	answer, err := r.turn(context.Background(), "do it")
	if err != nil || !strings.Contains(answer, "do it") || !strings.Contains(answer, "SUMMARY") || !strings.Contains(answer, "c.2.jsonl") {
		t.Fatalf("%.300q, %v\n%s", answer, err, &r.log)
	}
	kept, _ := filepath.Glob(filepath.Join(filepath.Dir(r.file()), "c.*.jsonl"))
	if len(kept) != 2 || !strings.Contains(r.log.String(), "c.1.jsonl has them") {
		t.Errorf("%v\n%s", kept, &r.log)
	}
	r = newRig(t, func(m []model.Message) model.Message {
		return calls("exec", `{"command": "head -c 9000 /dev/zero | tr '\\0' x"}`)
	})
	r.order.Context = 3000
	_, err = r.turn(context.Background(), "do it")
	kept, _ = filepath.Glob(filepath.Join(filepath.Dir(r.file()), "c.*.jsonl"))
	text, _ := os.ReadFile(r.file())
	if Status(err) != StatusModel || len(kept) != 0 || strings.Count(string(text), "\n") < 4 {
		t.Errorf("%v, %v", err, kept)
	}
}
