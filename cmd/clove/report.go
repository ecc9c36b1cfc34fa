package main

import (
	"fmt"
	"os"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// The colours of clove's own lines on a terminal.
const (
	red   = "\x1b[31m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

// invalid is a mistake on the command line. flag is the flag's name without dashes, or
// empty.
func invalid(flag, hint, format string, values ...any) error {
	if flag != "" {
		flag = "--" + flag
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: fmt.Sprintf(format, values...), Hint: hint}
}

// typedFailure is an error as programs read it: as cloved's are.
type typedFailure struct {
	agent.Failure
	Code api.Code `json:"code"`
	Word string   `json:"word"`
	Rule string   `json:"rule,omitempty"` // of a refusal: what decided
}

// report prints an error for people, or with --json for a program.
func (s *screen) report(err error) {
	if !s.json {
		s.reportFailure(*agent.FailureOf(err))
		return
	}
	e := api.ErrorOf(err)
	s.reportJSON(typedFailure{*agent.FailureOf(err), e.Code, e.Data.Word, e.Data.Rule})
}

// reportFailure is report for a failure from a record.
func (s *screen) reportFailure(f agent.Failure) {
	if s.json {
		s.reportJSON(f)
		return
	}
	message := f.Message
	if f.Step != "" {
		message = f.Step + ": " + message
	}
	// Messages of the standard library contain the error number's text already.
	if f.Errno != "" && !strings.Contains(message, f.Errno) {
		message += ": " + f.Errno
	}
	s.say("clove", red, message)
	if f.Hint != "" {
		s.say("hint", cyan, f.Hint)
	}
}

func (s *screen) reportJSON(failure any) {
	_ = writeLine(s.err, map[string]any{"error": failure}) // without stderr there is nowhere to report it
}

// say prints one line of clove's own to stderr. The text may have parts from an agent,
// so it is made printable.
func (s *screen) say(who, colour, text string) {
	who += ":"
	if s.colours() {
		who = colour + who + reset
	}
	// A raw terminal does not return to the first column by itself.
	end := "\n"
	if s.raw {
		end = "\r\n"
	}
	line := fmt.Sprintf("%s %s%s", who, printable(text), end)
	if s.asking == nil || !s.asking.terminal.Say(line) {
		fmt.Fprint(s.err, line)
	}
}

// colours follows no-color.org: any value of NO_COLOR but the empty one turns colours
// off.
func (s *screen) colours() bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(s.err)
}
