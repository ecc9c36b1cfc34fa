package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"
)

// patienceWithAFile is how long a hostile file may hold clove.
const patienceWithAFile = 20 * time.Second

// A hostile agent's file is refused with one line and a hint, within a bounded time, and nothing is
// created. The control is the same file without what is hostile.
func TestHostileAgentFiles(t *testing.T) {
	b := manifestBench(t)
	const head = "version: 1\nname: web\ncommand: [\"true\"]\n"
	utf16Text := func(text string) (bytes []byte) {
		for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
			bytes = binary.LittleEndian.AppendUint16(bytes, unit)
		}
		return bytes
	}
	b.file("huge", "", 0o755)
	at := func(name string) string { return filepath.Join(b.host.Dir, name) }
	for _, do := range []error{unix.Mkfifo(at("pipe"), 0o644), os.Truncate(at("huge"), 1<<42), os.Symlink("/etc/hostname", at("out.sh"))} {
		if do != nil {
			t.Fatal(do)
		}
	}
	deep := strings.Repeat("[", 100_000)
	for name, row := range map[string]struct{ text, want string }{
		"control":           {head, ""},
		"byte order mark":   {"\ufeff" + head, ""},
		"bomb":              {head + "a: &a [x, x]\nb: &b [*a, *a]\nlabels: [*b, *b]\n", "there is no key"},
		"bomb in a list":    {head + "labels: [&a [x, x], *a]\n", "anchors are not read here"},
		"alias":             {head + "labels: [*a]\n", "unknown anchor"},
		"anchored key":      {head + "&a labels: [x]\n", "anchors and tags of keys"},
		"merge key":         {head + "limits: {<<: {memory: 1M}}\n", `there is no key "<<"`},
		"merge at the top":  {head + "<<: {user: root}\n", `there is no key "<<"`},
		"merged variables":  {head + "environment: {set: {<<: {A: b}}}\n", "clove: "},
		"repeated key":      {head + "user: agent\nuser: root\n", "stands in line 4 already"},
		"key in another":    {head + "User: root\n", `there is no key "User"`},
		"python object":     {head + "labels: !!python/object/apply:os.system [\"touch x\"]\n", "are not read here"},
		"python name":       {head + "description: !!python/name:os.system x\n", "are not read here"},
		"tag of a map":      {head + "limits: !!python/object:os.x {memory: 64M}\n", "are not read here"},
		"tag of a document": {"!!python/object/apply:os.system\n" + head, "are not read here"},
		"local tag":         {head + "description: !include /etc/shadow\n", "are not read here"},
		"binary tag":        {head + "description: !!binary eA==\n", "are not read here"},
		"second document":   {head + "---\nversion: 1\nuser: root\n", "there is a second document"},
		"not UTF-8":         {head + "description: \xff\xfe\n", "no text in UTF-8"},
		"UTF-16":            {string(utf16Text(head)), "no text in UTF-8"},
		"a program":         {"\x7fELF\x02\x01\x01\x00\x00", "clove: "},
		"nothing":           {"", "it names no version"},
		"deep lists":        {head + "labels: " + deep, "clove: "},
		"deep maps":         {head + "labels: " + strings.Repeat("{a: ", 60_000), "clove: "},
		"deep blocks":       {head + "labels:\n" + strings.Repeat("- ", 100_000) + "x\n", "clove: "},
		"many labels":       {head + "labels: [" + strings.Repeat("x,", 120_000) + "]\n", "clove: "},
		"a long text":       {head + "description: \"" + strings.Repeat("x", 300_000) + "\"\n", "has more than 262144 bytes"},
		"a name above":      {"version: 1\nname: ../other\ncommand: [\"true\"]\n", "is no name of an agent"},
		"a name with lines": {"version: 1\nname: \"a\\nb\"\ncommand: [\"true\"]\n", "is no name of an agent"},
		"another's home":    {head + "home: other\n", "is not kept"},
		"home by its key":   {head + "kept_home: other\n", `there is no key "kept_home"`},
		"a terminal's code": {head + "\"\\e[2J\": x\n", `there is no key "\x1b[2J"`},
		"script above":      {"version: 1\nname: web\nscript: ../../../../../../etc/shadow\n", "line 3, column 9: script"},
		"script of root's":  {"version: 1\nname: web\nscript: /root/.ssh/id_rsa\n", "line 3, column 9: script"},
		"script is no file": {"version: 1\nname: web\nscript: /dev/zero\n", "is not a regular file"},
		"script is a pipe":  {"version: 1\nname: web\nscript: ./pipe\n", "is not a regular file"},
		"endless script":    {"version: 1\nname: web\nscript: ./huge\n", "has more than 4294967296 bytes"},
		"script link out":   {"version: 1\nname: web\nscript: ./out.sh\n", "cannot be the workspace"},
		"extends a pipe":    {head + "extends: ./pipe\n", "is not a regular file"},
		"variables":         {head + "environment: {files: [./pipe]}\n", "is not a regular file"},
		"a filter":          {head + "seccomp: ./pipe\n", "is not a regular file"},
	} {
		b.file("x.yaml", row.text, 0o644)
		for _, line := range [][]string{{"manifest", "check", "x.yaml"}, {"run", "x.yaml"}} {
			began := time.Now()
			status, _, stderr := b.clove(line...)
			if row.want == "" {
				if line[0] == "manifest" && (status != 0 || stderr != "") {
					t.Errorf("%s: %v: %d, %q", name, line, status, stderr)
				}
				continue
			}
			if status == 0 || !strings.Contains(stderr, row.want) || strings.Count(stderr, "clove: ") != 1 || len(stderr) > 2000 || strings.Contains(stderr, "\x1b") || strings.Contains(stderr, "\xff") {
				t.Errorf("%s: %v: %d, %.600q", name, line, status, stderr)
			}
			if took := time.Since(began); took > patienceWithAFile {
				t.Errorf("%s: %v takes %s", name, line, took)
			}
		}
	}
}

// The manifest's own file is a regular one of a bounded size. The control is a link to one.
func TestTheFileOfAnAgentIsRegular(t *testing.T) {
	b := manifestBench(t)
	b.file("agent.yaml", "version: 1\nname: web\ncommand: [\"true\"]\n", 0o644)
	at := func(name string) string { return filepath.Join(b.host.Dir, name) }
	for link, to := range map[string]string{"link.yaml": "agent.yaml", "zero.yaml": "/dev/zero", "kernel.yaml": "/proc/kmsg", "folder.yaml": ".", "loop.yaml": "loop.yaml", "gone.yaml": "none"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(at("pipe.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.file("huge.yaml", "", 0o644)
	if err := os.Truncate(at("huge.yaml"), 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "zero", "kernel", "folder", "loop", "gone", "pipe", "huge"} {
		began := time.Now()
		status, _, stderr := b.clove("manifest", "check", name+".yaml")
		if good := name == "link"; (status == 0) != good || !good && (!strings.Contains(stderr, "cannot read the manifest") || !strings.Contains(stderr, "hint: ")) {
			t.Errorf("%s: %d, %q", name, status, stderr)
		}
		if took := time.Since(began); took > patienceWithAFile {
			t.Errorf("%s takes %s", name, took)
		}
	}
}
