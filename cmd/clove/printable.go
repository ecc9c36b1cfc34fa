package main

import (
	"os"
	"strconv"
	"strings"
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
