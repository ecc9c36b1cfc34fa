package api

import "time"

// NoteLogLine is the notification of run.logs.
const NoteLogLine = "run.log"

// StreamClove is the stream of lines that clove itself adds to a log. The others are stdout and
// stderr, and in a log of models what was asked and answered.
const (
	StreamClove   = "clove"
	StreamRequest = "request"
	StreamAnswer  = "answer"
)

// LogsParams chooses lines of a run's log.
type LogsParams struct {
	RunParams
	Since  time.Time `json:"since,omitzero"`
	Tail   *int      `json:"tail,omitempty"`   // only the last so many; absent: all
	Follow bool      `json:"follow,omitempty"` // go on until the run has ended
	// After is the number of the last line that the caller has: only later ones
	// are given. Where some of those are gone, a line with LostLines comes first.
	After int64 `json:"after,omitempty"`
	// AfterOffset is that line's offset. Without it LostBytes of lines that
	// rotation dropped behind it is not known, and absent.
	AfterOffset *int64 `json:"after_offset,omitempty"`
	// Many asks for notifications with lines, as many as are there, in place of line.
	Many bool `json:"many,omitempty"`
	// Models asks for what the run's calls of models said and got. Only a run with model_log
	// has it. Each call is a line of stream clove, and the lines of request and answer.
	Models bool `json:"models,omitempty"`
}

// LogLine is one line of output as it stands in the log file.
type LogLine struct {
	Time    time.Time `json:"time"`
	Stream  string    `json:"stream"`            // stdout, stderr, or clove: a line of clove's own; request and answer in a log of models
	Text    string    `json:"text,omitempty"`    // without the line's end
	Bytes   []byte    `json:"bytes,omitempty"`   // in place of text, where it is not UTF-8
	Partial bool      `json:"partial,omitempty"` // the line goes on in the next one
	// Lost counts what is missing here, since the line before it: what rotation
	// or a full disk dropped.
	LostLines int64 `json:"lost_lines,omitempty"`
	LostBytes int64 `json:"lost_bytes,omitempty"`
	// Number counts the run's lines from 1 on, those that are lost included;
	// absent in the file, and in a line that says what is missing.
	Number int64 `json:"number,omitempty"`
	// Offset counts the bytes of these lines without their ends, this one included.
	Offset int64 `json:"offset,omitempty"`
}

// Content is the line's bytes, without its end.
func (l LogLine) Content() []byte {
	if l.Bytes != nil {
		return l.Bytes
	}
	return []byte(l.Text)
}

// LogNote is the notification of one line, or of many where the caller asked for that.
type LogNote struct {
	ID    any       `json:"id"`
	Line  LogLine   `json:"line,omitzero"`
	Lines []LogLine `json:"lines,omitempty"`
}
