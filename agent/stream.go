package agent

import (
	"slices"
	"strings"
)

// MailStream is what a standard stream of an agent is joined to: the mail of a name.
type MailStream struct {
	Name string // a run's or a registered one
	JSON bool   // a line is any value of JSON; else it is a text
}

// ParseMailStream reads mail:NAME or mail:NAME,json. field is the one of the Spec that says it.
func ParseMailStream(field, text string) (s MailStream, err error) {
	const hint = "write mail:NAME, or mail:NAME,json for lines of JSON"
	rest, found := strings.CutPrefix(text, "mail:")
	s.Name, s.JSON = strings.CutSuffix(rest, ",json")
	if !found {
		return s, wrong(field, hint, "%.64q is nothing that a standard stream is joined to", text)
	}
	if err := ValidateName(s.Name); err != nil {
		return s, wrong(field, hint, "%s", FailureOf(err).Message)
	}
	return s, nil
}

// StreamUse counts what passed between mail and the agent's standard streams.
type StreamUse struct {
	Sent     int64 `json:"sent"`               // lines of stdout
	Refused  int64 `json:"refused,omitempty"`  // lines that were not sent: too long, not UTF-8, or no JSON where that is asked for
	Unsent   int64 `json:"unsent,omitempty"`   // lines that could not be sent; where the run ended during the wait, the first may have been
	WaitedMS int64 `json:"waited_ms"`          // stdout was not read: the receiver's mailbox was full, a budget was spent, or cloved was away
	Received int64 `json:"received"`           // messages that were written to stdin
	Rejected int64 `json:"rejected,omitempty"` // messages that no line can carry; they are dead letters
	// Error says why nothing more passed; empty: nothing kept it from that.
	Error string `json:"error,omitempty"`
}

// HasStreams reports whether a standard stream is joined to mail.
func (k Kernel) HasStreams() bool { return k.StdoutTo != "" || k.StdinFrom != "" }

// checkStreams refuses what cannot be joined to mail.
func checkStreams(s Spec) error {
	for _, stream := range []struct{ field, text string }{{"kernel.stdout_to", s.Kernel.StdoutTo}, {"kernel.stdin_from", s.Kernel.StdinFrom}} {
		if stream.text == "" {
			continue
		}
		if _, err := ParseMailStream(stream.field, stream.text); err != nil {
			return err
		}
		if s.Terminal {
			return wrong(stream.field, "omit the terminal", "a terminal is not joined to mail")
		}
	}
	if s.Kernel.StdinFrom != "" && s.Stdin {
		return wrong("kernel.stdin_from", "omit one of them", "standard input cannot come from mail and from clove attach")
	}
	return nil
}

// ReceivesAs is the name that a run has to register for its standard input; empty: none, or its own.
func (s Spec) ReceivesAs() string {
	from, err := ParseMailStream("", s.Kernel.StdinFrom)
	if err != nil || slices.Contains([]string{s.Name, string(s.ID)}, from.Name) {
		return ""
	}
	return from.Name
}
