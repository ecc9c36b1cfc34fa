package redact

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// The time of a search does not show how much of a value a text has: guesses take as long as other texts, unless all but a few characters
// are right. A difference counts if each
// of several measurements has it. The control is a search that looks closely at what begins as the value does.
func TestTheTimeShowsNoGuess(t *testing.T) {
	for _, value := range []string{"ghp_a-short-value-93q", "ghp_Zx81-a-long-value-of-the-tests-0123456789"} {
		other := strings.Repeat("#", len(value)-16)
		text := func(line string) []byte { return []byte(strings.Repeat(line+"\n", 64<<10/len(value))) }
		guess, none := text(value[:len(value)-16]), text(other)
		s := New(value)
		if slower, ok := slowed(func(text []byte) { s.Find(text) }, guess, none, false); ok {
			t.Errorf("%s: guesses take %.2f times as long", value, slower)
		}
		compared := func(text []byte) {
			for i := range text {
				if bytes.HasPrefix(text[i:], []byte(value[:4])) { // a candidate is looked at closely
					sink += bytes.Count(text[i:min(i+1024, len(text))], []byte("no"))
				}
			}
		}
		if slower, ok := slowed(compared, guess, none, true); !ok {
			t.Errorf("control: guesses take %.2f times as long", slower)
		}
	}
}

var sink int

// slowed measures by how much a guess takes longer, until a measurement is as wanted, and reports whether it is visible.
func slowed(search func([]byte), guess, none []byte, wanted bool) (ratio float64, visible bool) {
	for range 6 {
		var took [2][]time.Duration
		for i := range 42 {
			for j, text := range [][]byte{guess, none} {
				if i%2 == 1 {
					text, j = [][]byte{guess, none}[1-j], 1-j
				}
				began := time.Now()
				search(text)
				took[j] = append(took[j], time.Since(began))
			}
		}
		for j := range took {
			slices.Sort(took[j])
		}
		ratio = float64(took[0][21]) / float64(took[1][21])
		if visible = ratio > 1.1 || ratio < 1/1.1; visible == wanted {
			break
		}
	}
	return ratio, visible
}
