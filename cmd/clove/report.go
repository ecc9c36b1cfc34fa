package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// The colours of clove's own lines on a terminal.
const (
	red   = "\x1b[31m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

// invalid is a mistake on the command line. flag is the flag's name, without dashes, or empty.
func invalid(flag, hint, format string, values ...any) error {
	if flag != "" {
		flag = "--" + flag
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: fmt.Sprintf(format, values...), Hint: hint}
}

// report tells people, or with --json a program, what went wrong.
func (p *program) report(err error) {
	p.reportFailure(*agent.FailureOf(err))
}

// reportFailure is report for what a record holds.
func (p *program) reportFailure(f agent.Failure) {
	if p.json {
		_ = writeLine(p.err, struct { // nobody is left to tell when stderr is gone
			Error agent.Failure `json:"error"`
		}{f})
		return
	}
	message := f.Message
	if f.Step != "" {
		message = f.Step + ": " + message
	}
	if f.Errno != "" && !strings.Contains(message, f.Errno) {
		message += ": " + f.Errno
	}
	p.say("clove", red, message)
	if f.Hint != "" {
		p.say("hint", cyan, f.Hint)
	}
}

// say writes one line of clove's own to stderr.
func (p *program) say(who, colour, text string) {
	who += ":"
	if p.colours() {
		who = colour + who + reset
	}
	end := "\n"
	if p.raw {
		end = "\r\n"
	}
	fmt.Fprintf(p.err, "%s %s%s", who, printable(text), end)
}

// colours follows no-color.org: any value but the empty one turns them off.
func (p *program) colours() bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(p.err)
}

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
