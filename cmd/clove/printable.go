package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// isTerminal asks the kernel in the way of isatty(3).
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// printable escapes everything that could move a terminal's cursor or look like another
// line. Names and messages come from agents.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		// As Go writes it in a string, so it can be read back; the quotes are cut off.
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// unprintable reports control characters, and the invisible ones that change the
// direction of writing.
func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// printJSON writes one document to stdout.
func (s *screen) printJSON(value any) error { return writeIndented(s.out, value) }

// writeIndented writes value as JSON for people, on several lines.
func writeIndented(w io.Writer, value any) error {
	encoder := jsonEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeLine writes value as one line of JSON.
func writeLine(w io.Writer, value any) error { return jsonEncoder(w).Encode(value) }

// jsonEncoder does not escape <, > and &: the output is not for HTML, and commands are
// full of them.
func jsonEncoder(w io.Writer) *json.Encoder {
	if file, ok := w.(*os.File); ok && isTerminal(file) {
		w = terminalJSON{file}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// terminalJSON writes JSON to a terminal. A JSON string may contain U+0080 to U+009F
// and characters that change the direction of writing, which act on terminals, and
// texts come from agents. They are escaped, which changes no value. Each Write has
// whole characters, because json.Encoder writes a value at once.
type terminalJSON struct{ to io.Writer }

func (t terminalJSON) Write(text []byte) (int, error) {
	shown := make([]byte, 0, len(text))
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == '\n' || !unprintable(r) {
			shown = append(shown, rest[:size]...)
		} else {
			shown = appendEscaped(shown, r)
		}
		rest = rest[size:]
	}
	// The caller compares the count with what it passed, not with what was written.
	if _, err := t.to.Write(shown); err != nil {
		return 0, err
	}
	return len(text), nil
}

// appendEscaped writes r as RFC 8259 section 7 defines it, as a surrogate pair if it
// has more than 16 bits.
func appendEscaped(text []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		digits := strconv.FormatUint(0x10000+uint64(unit), 16)
		text = append(append(text, `\u`...), digits[1:]...)
	}
	return text
}
