package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// RawString is text of any bytes: names of files and arguments need not be UTF-8. In JSON each
// byte that is not UTF-8 is an unpaired surrogate, \udc80 to \udcff, which no other text has.
// Python's surrogateescape (PEP 383) is the same form.
type RawString string

// RawStrings is a list of RawString.
type RawStrings []string

// MarshalJSON never replaces a byte.
func (s RawString) MarshalJSON() ([]byte, error) {
	text := []byte{'"'}
	for rest := string(s); rest != ""; {
		size := validBytes(rest)
		part, err := json.Marshal(rest[:size])
		if err != nil {
			return nil, err
		}
		text = append(text, part[1:len(part)-1]...)
		if rest = rest[size:]; rest != "" {
			text = fmt.Appendf(text, `\udc%02x`, rest[0])
			rest = rest[1:]
		}
	}
	return append(text, '"'), nil
}

// validBytes is how many bytes at the beginning are UTF-8.
func validBytes(text string) int {
	if utf8.ValidString(text) {
		return len(text)
	}
	for i := 0; ; {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// UnmarshalJSON reads the form of MarshalJSON. An unpaired surrogate that stands for no byte is an
// error.
func (s *RawString) UnmarshalJSON(text []byte) error {
	if !mayHaveSurrogates(text) {
		return json.Unmarshal(text, (*string)(s))
	}
	var raw strings.Builder
	from, to := 1, 1 // what is not yet decoded, without the quotation marks
	flush := func() error {
		var part string
		err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, text[from:to]), &part)
		raw.WriteString(part)
		return err
	}
	for to < len(text)-1 {
		unit, next := utf16Unit(text, to)
		switch low, _ := utf16Unit(text, next); {
		case unit < 0xd800 || unit > 0xdfff:
			to = next
			continue
		case unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff:
			to = next + len(`\udc00`)
			continue
		case unit < 0xdc80 || unit > 0xdcff:
			return fmt.Errorf(`\u%04x is an unpaired surrogate, and only \udc80 to \udcff stand for a byte`, unit)
		}
		if err := flush(); err != nil {
			return err
		}
		raw.WriteByte(byte(unit))
		from, to = next, next
	}
	err := flush()
	*s = RawString(raw.String())
	return err
}

// utf16Unit returns the unit that is escaped at i, 0 where there is none, and where the next
// character or escape begins.
func utf16Unit(text []byte, i int) (unit, next int) {
	switch {
	case i >= len(text) || text[i] != '\\':
		return 0, i + 1
	case i+6 > len(text) || text[i+1] != 'u':
		return 0, i + 2
	}
	n, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
	if err != nil {
		return 0, i + 2
	}
	return int(n), i + 6
}

// mayHaveSurrogates is false of nearly every text, which then needs no decoding of its own.
func mayHaveSurrogates(text []byte) bool {
	return bytes.Contains(text, []byte(`\ud`)) || bytes.Contains(text, []byte(`\uD`))
}

// MarshalJSON is RawString's, for each.
func (s RawStrings) MarshalJSON() ([]byte, error) {
	for _, text := range s {
		if !utf8.ValidString(text) {
			return json.Marshal(converted[RawString](s))
		}
	}
	return json.Marshal([]string(s))
}

// UnmarshalJSON is RawString's, for each.
func (s *RawStrings) UnmarshalJSON(text []byte) error {
	if !mayHaveSurrogates(text) {
		return json.Unmarshal(text, (*[]string)(s))
	}
	var raw []RawString
	err := json.Unmarshal(text, &raw)
	*s = converted[string](raw)
	return err
}

func converted[To, From ~string](all []From) []To {
	to := make([]To, len(all))
	for i, text := range all {
		to[i] = To(text)
	}
	return to
}

// UnpairedSurrogates counts those in a JSON text. encoding/json replaces them in a string, and
// keeps them in a RawString.
func UnpairedSurrogates(text []byte) (n int) {
	if !mayHaveSurrogates(text) {
		return 0
	}
	for i := 0; i < len(text); {
		unit, next := utf16Unit(text, i)
		low, behind := utf16Unit(text, next)
		switch {
		case unit >= 0xd800 && unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff:
			next = behind
		case unit >= 0xd800 && unit <= 0xdfff:
			n++
		}
		i = next
	}
	return n
}
