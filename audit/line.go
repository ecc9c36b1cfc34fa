package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"
)

// lineMax bounds a record's line with its end, in bytes: what bounded leaves, each byte
// escaped in six, stays below.
const lineMax = 64 << 10

// line returns e as a record that follows prev, with its line end, and its hash.
func (e Entry) line(number uint64, prev tlog.Hash) ([]byte, tlog.Hash, error) {
	e = e.bounded()
	e.Version, e.Number, e.Prev = Version, number, prev.String()
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, tlog.Hash{}, fmt.Errorf("cannot write record %d: %w", number, err)
	}
	line := ascii(text.Bytes())
	if len(line) > lineMax {
		return nil, tlog.Hash{}, fmt.Errorf("record %d has %d bytes, at most %d are possible", number, len(line), lineMax)
	}
	return line, tlog.RecordHash(line[:len(line)-1]), nil
}

// ascii escapes in JSON what is not printable ASCII. Programs disagree on which other
// characters end a line (U+0085, U+2028), and some of them move a terminal's cursor.
func ascii(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x7f }) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r < 0x7f {
			out = append(out, text[:size]...)
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		text = text[size:]
	}
	return out
}

// record is an Entry with its place in the chain.
type record struct {
	Entry
	prev, hash tlog.Hash
}

var errNoRecord = errors.New("it is not a record")

// parse reads one line without its end. A record of a later version is accepted: the chain
// is the same.
func parse(line []byte) (record, error) {
	var r record
	if bytes.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' }) || len(line) >= lineMax {
		return r, errNoRecord
	}
	if err := json.Unmarshal(line, &r.Entry); err != nil || r.Number == 0 || r.Version < Version {
		return r, errNoRecord
	}
	prev, err := tlog.ParseHash(strings.TrimSpace(r.Prev))
	if err != nil {
		return r, errNoRecord
	}
	r.prev, r.hash = prev, tlog.RecordHash(line)
	return r, nil
}
