package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/loop/model"
)

// call makes a call in a folder.
func call(t *testing.T, dir, name string, arguments any) string {
	t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	if raw, is := arguments.(string); is {
		text = []byte(raw)
	}
	r, err := (&Box{Dir: dir}).Run(context.Background(), model.Function{Name: name, Arguments: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Text
}

type object = map[string]any

func TestTools(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		name      string
		arguments any
		want      string
	}{
		{"list", object{}, "[empty]"},
		{"write_file", object{"path": "a/b.txt", "content": "one\ntwo\nthree\n"}, "wrote 14 bytes"},
		{"read_file", object{"path": "a/b.txt"}, "one\ntwo\nthree\n"},
		{"read_file", object{"path": "a/b.txt", "offset": 2, "limit": 1}, "two\n[the file goes on: read it with offset 3]"},
		{"read_file", object{"path": "a/b.txt", "offset": 9}, "error: the file ends before line 9"},
		{"edit", object{"path": "a/b.txt", "old": "two", "new": "2"}, "replaced 1"},
		{"edit", object{"path": "a/b.txt", "old": "e", "new": ""}, "error: old is in the file 3 times: give more of what is around it, or all"},
		{"edit", object{"path": "a/b.txt", "old": "e", "new": "E", "all": true}, "replaced 3"},
		{"edit", object{"path": "a/b.txt", "old": "two", "new": "2"}, "error: old is not in the file: read it again"},
		{"exec", object{"command": "cat a/b.txt; echo no >&2; exit 3"}, "onE\n2\nthrEE\nno\n\n[exit status 3]"},
		{"exec", object{"command": "sleep 60", "timeout_seconds": 1}, "\n[killed after 1s]"},
		{"list", object{"path": "a"}, "b.txt 12\n"},
		{"list", object{}, "a/\n"},
		{"done", object{"answer": "yes"}, "yes"},
		{"exec", `{"command": "ls"`, "error: the arguments do not fit: unexpected EOF"},
		{"exec", object{"cmd": "ls"}, `error: the arguments do not fit: json: unknown field "cmd"`},
		{"delete", object{}, `error: there is no tool "delete"; there are exec, read_file, write_file, edit, list, done`},
	} {
		if got := call(t, dir, row.name, row.arguments); got != row.want {
			t.Errorf("%s %v: %q", row.name, row.arguments, got)
		}
	}
	for _, tool := range All() {
		if !json.Valid(tool.Parameters) {
			t.Errorf("the schema of %s is no JSON: %s", tool.Name, tool.Parameters)
		}
	}
}

// Nothing that has no end, or hundreds of gigabytes, is held or waited for.
func TestResultsAreBounded(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("huge"), nil, 0o600)
	os.Truncate(at("huge"), 1<<40)
	os.WriteFile(at("lines"), []byte(strings.Repeat("0123456789\n", 10_000)), 0o600)
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(at("many"), 0o700)
	for i := range maxNames + 50 {
		os.WriteFile(at(fmt.Sprintf("many/%d", i)), nil, 0o600)
	}
	for _, row := range []struct {
		name      string
		arguments object
		want      string
	}{
		{"read_file", object{"path": "huge"}, "longer than a result may be"},
		{"read_file", object{"path": "lines", "limit": 1 << 40}, "read it with offset 2979]"},
		{"read_file", object{"path": "fifo"}, "no regular file"},
		{"read_file", object{"path": "/dev/zero"}, "no regular file"},
		{"write_file", object{"path": "fifo", "content": "x"}, "error: "},
		{"edit", object{"path": "huge", "old": "a", "new": "b"}, "more than"},
		{"edit", object{"path": "lines", "old": "0", "new": strings.Repeat("x", 10_000), "all": true}, "would have more than"},
		{"list", object{"path": "many"}, "1000 of more"},
		{"exec", object{"command": "head -c 300000000 /dev/zero; echo end"}, "end\n\n[exit status 0]"},
		{"exec", object{"command": "sleep 30 & echo started"}, "started"},
	} {
		began := time.Now()
		got := call(t, dir, row.name, row.arguments)
		if !strings.Contains(got, row.want) || len(got) > MaxResult+200 {
			t.Errorf("%s %v: %d bytes, …%.200q", row.name, row.arguments, len(got), got[max(0, len(got)-200):])
		}
		if time.Since(began) > 20*time.Second {
			t.Errorf("%s %v takes %s", row.name, row.arguments, time.Since(began))
		}
	}
	if size := func() int64 { info, _ := os.Stat(at("lines")); return info.Size() }(); size != 110_000 {
		t.Errorf("an edit that was refused has left %d bytes", size)
	}
}

// The end of the context ends a command with all that it started.
func TestACommandIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := (&Box{Dir: t.TempDir()}).Run(ctx, model.Function{Name: "exec", Arguments: `{"command": "sleep 60 | sleep 60"}`})
	if err == nil {
		t.Error("it has a result")
	}
}
