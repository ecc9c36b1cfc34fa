package logs

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/api"
)

// FuzzRead: a log in any state, left by a killed supervisor or a failing disk, can be read and
// continued.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"stream":"stdout","text":"x"}`+"\n"), []byte(""), 1)
	f.Add([]byte(`{"head":true,"lost_lines":-9223372036854775808}`+"\n{"), []byte("\n\n\x00{}\n"), -1)
	f.Add([]byte(`{"head":true,"stream":"clove","lost_lines":-9223372036854775808}`+"\n{"), []byte("\n"), -1)
	f.Add([]byte(`{"stream":"clove","lost_lines":9223372036854775807}`+"\n"), []byte(`{"stream":"clove","lost_lines":1,"lost_bytes":-1}`), -1)
	f.Add([]byte(`{"bytes":"!!"}`+"\n"+`{"time":"x"}`+"\n[]\nnull\n17\n"), []byte(`{"text":1}`), 0)
	f.Fuzz(func(t *testing.T, now, before []byte, tail int) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{newer: now, older: before} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Open(dir, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		lines := l.Stream("stdout")
		_, _ = lines.Write([]byte("the last line\n"))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var last api.LogLine
		count := 0
		err = Read(t.Context(), dir, Choice{Tail: min(max(tail, -1), 1<<20)}, func(line api.LogLine) error { last = line; count++; return nil })
		if err != nil || tail != 0 && last.Text != "the last line" || tail > 0 && count > tail {
			t.Errorf("tail %d: %d lines, the last %+v, %v", tail, count, last, err)
		}
	})
}
