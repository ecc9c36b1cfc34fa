package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

var logLines = []LogLine{
	{Time: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), Stream: "stdout", Text: "plain", Number: 1, Offset: 5},
	{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stream: "stderr"},
	{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), Stream: "stdout", Text: "\x1b[31m\"quoted\"\\ <b>&\u2028 ü 🙂 \ufffd", Partial: true, Number: 7},
	{Stream: "clove", LostLines: 3, LostBytes: 4},
	{Stream: "stdout", Bytes: []byte{0xff, 0}, Number: 9, Offset: -1},
	{Stream: "a<b", Text: `ends with a backslash \`},
	{Time: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), Stream: "stdout"},
}

// The fast encoder writes what encoding/json writes, and the fast decoder reads what it reads.
func TestLogLineIsJSON(t *testing.T) {
	t.Parallel()
	for _, line := range logLines {
		want, werr := json.Marshal(line)
		got, err := line.AppendJSON([]byte("x"))
		if (werr == nil) != (err == nil) || err == nil && string(got) != "x"+string(want) {
			t.Errorf("%+v: %s, want %s, %v", line, got, want, err)
		}
		if werr != nil {
			continue
		}
		read, rest, ok := ParseLogLine(append(want, "rest"...))
		if !ok || string(rest) != "rest" || !read.Time.Equal(line.Time) {
			t.Fatalf("%s: %v %s", want, ok, rest)
		}
		if read.Time = line.Time; !reflect.DeepEqual(read, line) {
			t.Errorf("%+v, want %+v", read, line)
		}
	}
}

// Every incomplete line is left to encoding/json, which refuses it.
func TestPartOfALogLineIsNone(t *testing.T) {
	t.Parallel()
	for _, line := range logLines[:6] {
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		for n := range text {
			if _, _, ok := ParseLogLine(text[:n]); ok {
				t.Errorf("%s is taken for a line", text[:n])
			}
		}
	}
}

// FuzzLogNote: the fast decoder returns what encoding/json returns.
func FuzzLogNote(f *testing.F) {
	note, err := json.Marshal(LogNote{ID: 1, Lines: logLines[:6]})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(note)
	f.Add([]byte(`{"id":1,"line":{"time":"2026-01-02T03:04:05Z","stream":"stdout"}}`))
	f.Add([]byte(`{"id":1,"lines":[{"time":"2026-01-02T03:04:05Z","stream":"stdout","number":01}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		quick, ok := parseMany(text)
		var want LogNote
		err := json.Unmarshal(text, &want)
		if !ok {
			return
		}
		a, _ := json.Marshal(quick)
		b, _ := json.Marshal(want)
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: read as %s, want %s, %v", text, a, b, err)
		}
	})
}
