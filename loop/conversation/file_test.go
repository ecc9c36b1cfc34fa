package conversation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/loop/model"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, _, err := Open(path, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func add(t *testing.T, f *File, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := f.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

func said(role, text string) Record { return Record{Message: model.Message{Role: role, Content: text}} }

var twoCalls = Record{Iteration: 1, Usage: &model.Usage{In: 5000, Out: 10}, Message: model.Message{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{
	{ID: "a", Type: "function", Function: model.Function{Name: "exec", Arguments: "{}"}},
	{ID: "b", Type: "function", Function: model.Function{Name: "list", Arguments: "{}"}}}}}

// Another process goes on where the first was killed: the second call has no result.
func TestAConversationGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "c.jsonl")
	f := open(t, path)
	add(t, f, said(model.RoleSystem, "be brief"), said(model.RoleUser, "do it"), twoCalls,
		Record{Message: model.Message{Role: model.RoleTool, Content: "one", ToolCallID: "a"}})
	f.Close()
	f = open(t, path)
	if open := f.Unanswered(); len(open) != 1 || open[0].ID != "b" {
		t.Errorf("without a result are %v", open)
	}
	if turn := f.Turn(); turn != (Turn{"do it", 1, true}) {
		t.Errorf("%+v", turn)
	}
	if n := len(f.Messages()); n != 4 {
		t.Errorf("%d messages", n)
	}
	if tokens := f.Tokens(); tokens < 5010 || tokens > 5030 {
		t.Errorf("the provider has reported 5010 tokens before the result, and the conversation has %d", tokens)
	}
	add(t, f, Record{Message: model.Message{Role: model.RoleTool, Content: "two", ToolCallID: "b"}, End: true})
	if f.Turn().Open || f.Unanswered() != nil && len(f.Unanswered()) > 0 {
		t.Error("the turn has ended")
	}
}

// A line that a kill has cut is removed, and what is behind it is as if it had never begun. The
// control: a whole line that is no record is refused, and the file stays.
func TestALineThatWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	f := open(t, path)
	add(t, f, said(model.RoleUser, "do it"))
	f.Close()
	whole, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(whole, whole[:20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, dropped, err := Open(path, 0)
	if err != nil || dropped != 20 || f.Len() != 1 {
		t.Fatalf("%d dropped, %v", dropped, err)
	}
	add(t, f, said(model.RoleAssistant, "done"))
	f.Close()
	if open(t, path).Len() != 2 {
		t.Error("what was written behind a cut line is lost")
	}
	other := filepath.Join(t.TempDir(), "c.jsonl")
	text := string(whole) + "no record\n"
	os.WriteFile(other, []byte(text), 0o600)
	if _, _, err := Open(other, 0); err == nil || !strings.Contains(err.Error(), ":2 is no message") {
		t.Errorf("control: %v", err)
	}
	if now, _ := os.ReadFile(other); string(now) != text {
		t.Errorf("the file is now %q", now)
	}
}

// A summary takes the place of the conversation, all of which stays beside it.
func TestNothingIsLostByASummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	f := open(t, path)
	for n, want := range []string{"c.1.jsonl", "c.2.jsonl"} {
		add(t, f, said(model.RoleSystem, "be brief"), said(model.RoleUser, strings.Repeat("long ", 1000)))
		before, _ := os.ReadFile(path)
		if !f.Full(1000) || f.Full(10_000) {
			t.Errorf("the conversation has %d tokens", f.Tokens())
		}
		kept, err := f.Replace(func(kept string) Record {
			r := said(model.RoleUser, "a summary of "+kept)
			r.SummaryOf, r.Prompt, r.Iteration = kept, "do it", 7
			return r
		})
		if err != nil || kept != want {
			t.Fatalf("%d: %q, %v", n, kept, err)
		}
		if now, _ := os.ReadFile(filepath.Join(filepath.Dir(path), kept)); string(now) != string(before) {
			t.Error("the original is not kept")
		}
		if f.Full(1000) || f.Turn() != (Turn{"do it", 7, true}) || f.Instructions() != "be brief" {
			t.Errorf("%d tokens, %+v", f.Tokens(), f.Turn())
		}
		add(t, f, said(model.RoleAssistant, "after"))
	}
	f.Close()
	if f := open(t, path); f.Len() != 3 || f.Messages()[2].Content != "after" {
		t.Errorf("%v", f.Messages())
	}
}

// What a hostile home has in the file's place is refused and not waited for.
func TestWhatIsNoConversation(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("target"), nil, 0o600)
	os.Symlink("target", at("link"))
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(at("dir"), 0o700)
	os.WriteFile(at("huge"), nil, 0o600)
	os.Truncate(at("huge"), 8<<30)
	for _, name := range []string{"link", "fifo", "dir", "huge"} {
		if f, _, err := Open(at(name), 0); err == nil {
			f.Close()
			t.Errorf("%s is a conversation", name)
		}
	}
	open(t, at("target")) // the control
	if _, _, err := Open(at("target"), 0); !errors.Is(err, ErrInUse) {
		t.Errorf("a second user: %v", err)
	}
}
