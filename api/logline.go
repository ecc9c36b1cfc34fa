package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// A log has hundreds of thousands of lines, and each goes from a file over a socket to a
// terminal. What AppendJSON writes is what encoding/json would, and ParseLogLine reads
// that form alone, in one pass; both leave what is unusual to encoding/json.

// AppendJSON appends the line's JSON.
func (l LogLine) AppendJSON(to []byte) ([]byte, error) {
	// time.Time refuses to encode other years; encoding/json then gives its error.
	if len(l.Bytes) > 0 || !plainText(l.Stream) || l.Time.Year() < 0 || l.Time.Year() > 9999 {
		text, err := json.Marshal(l)
		return append(to, text...), err
	}
	to = append(to, `{"time":"`...)
	to = l.Time.AppendFormat(to, time.RFC3339Nano)
	to = append(append(append(to, `","stream":"`...), l.Stream...), '"')
	switch {
	case l.Text == "":
	case plainText(l.Text):
		to = append(append(append(to, `,"text":"`...), l.Text...), '"')
	default:
		text, err := json.Marshal(l.Text)
		if err != nil {
			return to, err
		}
		to = append(append(to, `,"text":`...), text...)
	}
	if l.Partial {
		to = append(to, `,"partial":true`...)
	}
	for _, f := range l.numbers() {
		if *f.value != 0 {
			to = strconv.AppendInt(append(to, f.begins...), *f.value, 10)
		}
	}
	return append(to, '}'), nil
}

// numberField is a number of a line, and how it begins in JSON. All of them have omitempty.
type numberField struct {
	begins string
	value  *int64
}

// numbers has the fields in the order of the struct, which is encoding/json's.
func (l *LogLine) numbers() [4]numberField {
	return [...]numberField{{`,"lost_lines":`, &l.LostLines}, {`,"lost_bytes":`, &l.LostBytes}, {`,"number":`, &l.Number}, {`,"offset":`, &l.Offset}}
}

// plainText reports whether JSON has a text as it is. encoding/json also escapes what
// would be a tag in HTML, and two ends of lines in JavaScript.
func plainText(text string) bool {
	ascii := true
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		return true
	}
	for _, c := range text {
		if c == utf8.RuneError || c == 0x2028 || c == 0x2029 {
			return false
		}
	}
	return true
}

// ParseLogLine reads a line from the beginning of text as AppendJSON writes it, and
// returns what comes behind it. ok is false for any other form: encoding/json may still
// read it.
func ParseLogLine(text []byte) (l LogLine, rest []byte, ok bool) {
	var at, stream string
	if rest, ok = bytes.CutPrefix(text, []byte(`{"time":`)); !ok {
		return l, nil, false
	}
	behind := rest
	if at, rest, ok = cutString(rest); !ok || len(behind)-len(rest) != len(at)+2 {
		return l, nil, false // encoding/json takes no escape there
	}
	if err := l.Time.UnmarshalText([]byte(at)); err != nil {
		return l, nil, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"stream":`)); !ok {
		return l, nil, false
	}
	if stream, rest, ok = cutString(rest); !ok {
		return l, nil, false
	}
	l.Stream = stream
	if after, has := bytes.CutPrefix(rest, []byte(`,"text":`)); has {
		if l.Text, rest, ok = cutString(after); !ok {
			return l, nil, false
		}
	}
	if after, has := bytes.CutPrefix(rest, []byte(`,"bytes":`)); has {
		var coded string
		var err error
		if coded, rest, ok = cutString(after); !ok {
			return l, nil, false
		}
		if l.Bytes, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return l, nil, false
		}
	}
	rest, l.Partial = bytes.CutPrefix(rest, []byte(`,"partial":true`))
	for _, f := range l.numbers() {
		if after, has := bytes.CutPrefix(rest, []byte(f.begins)); has {
			end := bytes.IndexAny(after, ",}")
			if end < 0 {
				return l, nil, false
			}
			var err error
			*f.value, err = strconv.ParseInt(string(after[:end]), 10, 64)
			// ParseInt takes +1 and 01, which JSON does not have.
			if err != nil || strconv.FormatInt(*f.value, 10) != string(after[:end]) {
				return l, nil, false
			}
			rest = after[end:]
		}
	}
	rest, ok = bytes.CutPrefix(rest, []byte("}"))
	return l, rest, ok
}

// cutString reads a JSON string.
func cutString(text []byte) (s string, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", nil, false
	}
	ascii := true
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return string(text[1:i]), text[i+1:], ascii || utf8.Valid(text[1:i])
		// The whole string is then left to encoding/json.
		case c == '\\':
			return cutEscaped(text, i)
		case c < ' ':
			return "", nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", nil, false
}

// cutEscaped is cutString for a string with an escape at i.
func cutEscaped(text []byte, i int) (s string, rest []byte, ok bool) {
	for ; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	if i >= len(text) {
		return "", nil, false
	}
	err := json.Unmarshal(text[:i+1], &s)
	return s, text[i+1:], err == nil
}

// ParseLogNote reads the notification of run.logs.
func ParseLogNote(text []byte) (LogNote, error) {
	if note, ok := parseMany(text); ok {
		return note, nil
	}
	var note LogNote
	err := json.Unmarshal(text, &note)
	return note, err
}

// parseMany reads many lines as cloved writes them (daemon/logs.go); ok is false for any
// other form.
func parseMany(text []byte) (note LogNote, ok bool) {
	head, rest, ok := bytes.Cut(text, []byte(`,"lines":[`))
	id, begins := bytes.CutPrefix(head, []byte(`{"id":`))
	if !ok || !begins || json.Unmarshal(id, &note.ID) != nil {
		return note, false
	}
	for {
		line, behind, ok := ParseLogLine(rest)
		if !ok || len(behind) == 0 {
			return note, false
		}
		note.Lines = append(note.Lines, line)
		if rest = behind[1:]; behind[0] == ']' {
			return note, string(rest) == "}"
		}
		if behind[0] != ',' {
			return note, false
		}
	}
}
