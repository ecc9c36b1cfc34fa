package document

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Writer writes lines of YAML. The zero value is ready.
type Writer struct{ text strings.Builder }

// Line writes one line; a level of depth is two blanks.
func (w *Writer) Line(depth int, format string, values ...any) {
	fmt.Fprintf(&w.text, strings.Repeat("  ", depth)+format+"\n", values...)
}

// Comment writes a line that says something to people.
func (w *Writer) Comment(format string, values ...any) {
	w.text.WriteString("# " + Shown(fmt.Sprintf(format, values...)) + "\n")
}

// Bytes is what was written.
func (w *Writer) Bytes() []byte { return []byte(w.text.String()) }

// Quoted writes a text as YAML reads it back: Go's escapes are YAML's, too.
func Quoted(text string) string { return strconv.QuoteToASCII(text) }

// Shown is a text without anything that ends a comment or changes a terminal.
func Shown(text string) string {
	return strings.Map(func(c rune) rune {
		if Unprintable(c) {
			return '?'
		}
		return c
	}, text)
}

// Unprintable reports whether a character could end a comment or change a terminal.
func Unprintable(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }
