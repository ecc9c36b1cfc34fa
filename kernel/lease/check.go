package lease

import (
	"bytes"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// traceMost bounds a trace, in bytes.
const traceMost = 64

// Check refuses what cannot be sent. Each of times is in milliseconds from now; 0: none.
func Check(m *Message, times ...int64) error {
	for _, ms := range times {
		if ms < 0 || time.Duration(ms) > agent.ClockCeiling/time.Millisecond {
			return api.Failure(api.CodeParams, "give a time above 0, or leave it out", "%d ms is no time from now", ms)
		}
	}
	switch {
	case m.Priority < 0 || m.Priority > PriorityMost:
		return api.Failure(api.CodeParams, "use 0 to 9", "%d is no priority", m.Priority)
	case len(m.Trace) > traceMost:
		return api.Failure(api.CodeParams, "use the trace of a message that came", "a trace has at most %d bytes", traceMost)
	}
	return CheckBody(&m.Body)
}

// CheckBody refuses what is no JSON, and drops blanks.
func CheckBody(body *json.RawMessage) error {
	return checkJSON(body, api.MailBodyMost, "write larger ones to a file that both see")
}

// CheckResult is CheckBody for the result of a job; nil is none.
func CheckResult(result *json.RawMessage) error {
	if len(*result) == 0 {
		*result = nil
		return nil
	}
	return checkJSON(result, api.JobResultMost, "send larger ones as mail, with then")
}

func checkJSON(text *json.RawMessage, most int, hint string) error {
	var compact bytes.Buffer
	if len(*text) == 0 || json.Compact(&compact, *text) != nil || compact.Len() > most {
		return api.Failure(api.CodeTooLarge, hint, "a body is JSON of 1 to %d bytes", most)
	}
	*text = compact.Bytes()
	return nil
}
