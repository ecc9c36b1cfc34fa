package main

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// isTerminal asks as isatty(3) does.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// printable returns text with everything escaped that could move a terminal's
// cursor or pretend to be another line. Names and messages come from agents.
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
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// unprintable: control characters, and the invisible ones that turn the
// direction of writing.
func unprintable(r rune) bool { return !strconv.IsPrint(r) }
