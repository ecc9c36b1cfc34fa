package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/tools"
)

type object = map[string]any

// do makes a call in a folder.
func do(dir string, most int, name string, arguments any) (string, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	return (&Box{Dir: dir, Most: most}).Do(context.Background(), tools.Order{Tool: name, Arguments: text})
}

func TestEachBuiltinHasAFunction(t *testing.T) {
	for _, d := range tools.Builtins() {
		if functions[d.Name] == nil {
			t.Errorf("%s has none", d.Name)
		}
	}
	if len(functions) != len(tools.Builtins()) {
		t.Error("a function has no row in the table")
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, row := range []struct {
		name      string
		arguments object
		want      string
	}{
		{"echo", object{"text": "hi"}, "hi"},
		{"list", object{}, "[empty]"},
		{"write", object{"path": "a/b.txt", "content": "one\ntwo\nthree\n"}, "wrote 14 bytes"},
		{"write", object{"path": ".hidden", "content": "x"}, "wrote 1 bytes"},
		{"read", object{"path": "a/b.txt", "offset": 2, "limit": 1}, "two\n[the file goes on: read it with offset 3]"},
		{"read", object{"path": filepath.Join(dir, "a/b.txt"), "offset": 3}, "three\n"},
		{"read", object{"path": "nothing"}, "no such file"},
		{"read", object{"path": "a"}, "a is no regular file"},
		{"read", object{"path": "a\x00b"}, "NUL"},
		{"edit", object{"path": "a/b.txt", "old": "two", "new": "2"}, "replaced 1"},
		{"edit", object{"path": "a/b.txt", "old": "e", "new": "E"}, "3 times"},
		{"list", object{}, "a/\n[1 names with a dot"},
		{"list", object{"include_hidden": true}, ".hidden 1\na/\n"},
		{"list", object{"include_hidden": true, "max_entries": 1}, "[1 of more"},
		{"glob", object{"pattern": "**/*.{txt,md}"}, "a/b.txt\n"},
		{"glob", object{"pattern": "a/?.t[a-x]t"}, "a/b.txt\n"},
		{"glob", object{"pattern": "*.txt"}, "[none]"},
		{"glob", object{"pattern": "a**/**/b.txt"}, "a/b.txt\n"},
		{"glob", object{"pattern": "**/**/a/**"}, "a/b.txt\n"},
		{"glob", object{"pattern": "a/b**/**/.txt"}, "[none]"},
		{"glob", object{"pattern": "["}, "[ without ]"},
		{"glob", object{"pattern": "{a"}, "{ without }"},
		{"grep", object{"pattern": "^(one|2)$"}, "a/b.txt:1:one\na/b.txt:2:2\n"},
		{"grep", object{"pattern": "THREE", "ignore_case": true, "path": "a/b.txt"}, "a/b.txt:3:three\n"},
		{"grep", object{"pattern": ".", "glob": "*.md"}, "[none]"},
		{"grep", object{"pattern": ".", "max_matches": 1}, ".hidden:1:x\n[1 of more"},
		{"grep", object{"pattern": "("}, "pattern: "},
		{"list", object{"folder": "x"}, `unknown field "folder"`},
		{"delete", object{}, `there is no built-in tool "delete"`},
	} {
		got, err := do(dir, 32<<10, row.name, row.arguments)
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s %v: %q", row.name, row.arguments, got)
		}
	}
}

// Nothing that has no end, or hundreds of gigabytes, is held or waited for, and no link is
// followed in a circle.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 32 << 10
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("huge"), []byte("x"), 0o600)
	os.Truncate(at("huge"), 1<<40)
	os.WriteFile(at("lines"), []byte(strings.Repeat("0123456789\n", 10_000)), 0o600)
	os.WriteFile(at("long"), []byte(strings.Repeat("y", 200_000)+"end"), 0o600)
	os.Mkdir(at("many"), 0o700)
	for i := range 3000 {
		os.WriteFile(at(fmt.Sprintf("many/%d", i)), nil, 0o600)
	}
	if err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("..", at("many/up")), os.Symlink("/dev/zero", at("zero"))); err != nil {
		t.Fatal(err)
	}
	deep := dir
	for range 2 * maxDepth {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name      string
		arguments object
		want      string
	}{
		{"read", object{"path": "huge"}, "longer than a result may be"},
		{"read", object{"path": "lines", "limit": 1 << 40}, "read it with offset 2979]"},
		{"read", object{"path": "fifo"}, "no regular file"},
		{"read", object{"path": "zero"}, "no regular file"},
		{"write", object{"path": "fifo", "content": "x"}, "fifo"},
		{"write", object{"path": "w", "content": strings.Repeat("x", maxWrite+1)}, "more than"},
		{"edit", object{"path": "huge", "old": "a", "new": "b"}, "more than"},
		{"list", object{"path": "many"}, "1000 of more"},
		{"list", object{"path": "many", "max_entries": 1 << 40}, ""},
		{"glob", object{"pattern": "**"}, "1000 of more"},
		{"glob", object{"pattern": "**/up/**"}, "[none]"},
		{"glob", object{"pattern": "**/nothing"}, "[1 folders could not be read, or have too much]"},
		{"glob", object{"pattern": strings.Repeat("**/", 300) + "nothing"}, "[none]"},
		{"grep", object{"pattern": "5"}, "of more"},
		{"grep", object{"pattern": "^x"}, "[1 binary files were skipped]"},
		{"grep", object{"pattern": "yyend"}, "[of 1 lines only the first 65536 bytes were searched]"},
		{"grep", object{"pattern": "(y*)*$", "path": "long"}, "bytes of the line left out]"},
		{"grep", object{"pattern": "x", "path": "fifo"}, "no regular file"},
	} {
		began := time.Now()
		got, err := do(dir, most, row.name, row.arguments)
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, row.want) || len(got) > most+300 {
			t.Errorf("%s %.200v: %d bytes, …%.200q", row.name, row.arguments, len(got), got[max(0, len(got)-200):])
		}
		if time.Since(began) > 20*time.Second {
			t.Errorf("%s %.200v takes %s", row.name, row.arguments, time.Since(began))
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"**/*.go", "a{b,c}[!d]", "[]", "[!]", "\\", "{{,}}", "[a-", "[^]]"} {
		f.Add(pattern, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		re, err := globPattern(pattern)
		if err == nil {
			re.MatchString(name)
		}
		if strings.Trim(pattern, "abcdefgh/.") == "" && pattern != "" && (err != nil || !re.MatchString(pattern)) {
			t.Errorf("%q does not match itself: %v", pattern, err)
		}
	})
}

func TestEnds(t *testing.T) {
	e := Ends{Most: 10}
	for range 100 {
		_, _ = e.Write([]byte("abcdefg"))
	}
	if got := e.Text(); got != "abcde\n[690 bytes left out]\ncdefg" || e.Left() != 690 {
		t.Errorf("%q, %d", got, e.Left())
	}
	if got := Cut("aé", 2); got != "a\n[2 bytes left out]" {
		t.Errorf("%q", got)
	}
}
