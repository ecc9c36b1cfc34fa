package people

import (
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/tools"
)

// output keeps the first and the last bytes of what is written to it, MaxText of both: errors of
// programs are at the end.
type output struct {
	head, tail []byte
	total      int64
}

const (
	noteBytes = 128 // for the line between both
	tailBytes = tools.MaxText / 3
	headBytes = tools.MaxText - tailBytes - noteBytes
)

func (o *output) write(p []byte) {
	o.total += int64(len(p))
	n := min(len(p), headBytes-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if len(o.tail) > 2*tailBytes { // not each time: it moves the bytes
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-tailBytes:]...)
	}
}

// text is what was kept, and how many bytes it does not have.
func (o *output) text() (text string, left int64) {
	tail := o.tail[max(0, len(o.tail)-tailBytes):]
	left = o.total - int64(len(o.head)) - int64(len(tail))
	if left == 0 {
		return string(o.head) + string(tail), 0
	}
	return string(o.head) + leftOut(left) + string(tail), left
}

func leftOut(bytes int64) string { return fmt.Sprintf("\n[%d bytes are left out here]\n", bytes) }

// cut takes the middle out of a text that is to have about so many bytes.
func cut(text string, most int) (short string, left int64) {
	head := max(0, most*2/3)
	tail := max(0, most-head-noteBytes)
	left = int64(len(text) - head - tail)
	if left <= 0 { // it is as short as it can be
		return "", int64(len(text))
	}
	return text[:head] + leftOut(left) + text[len(text)-tail:], left
}

// shortened is the beginning of a text.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-len("…")] + "…"
}

// wrong is an error about what a model asked for.
func wrong(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}
