package tools

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// head keeps the first bytes that are written, and counts the others.
type head struct {
	most int
	kept []byte
	all  int64
}

func (h *head) Write(p []byte) (int, error) {
	h.all += int64(len(p))
	h.kept = append(h.kept, p[:min(len(p), h.most-len(h.kept))]...)
	return len(p), nil
}

// text is what was kept as valid UTF-8 that takes at most h.most bytes as JSON, and how many bytes are
// missing.
func (h *head) text() (text string, left int64) {
	text = strings.ToValidUTF8(string(h.kept), "\uFFFD")
	for encoded(text) > h.most {
		cut := len(text) * h.most / encoded(text) // smaller in each round, and few rounds: most bytes are alike
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		left += int64(len(text) - cut)
		text = text[:cut]
	}
	return text, left + h.all - int64(len(h.kept))
}

// encoded is the size of a text as JSON, without its quotes.
func encoded(text string) int {
	quoted, _ := json.Marshal(text) // a string
	return len(quoted) - 2
}

// tail keeps the last bytes that are written.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.most):]...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text is what was kept as one text without blanks around it.
func (t *tail) text() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
}
