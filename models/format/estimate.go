package format

import (
	"bytes"
	"strings"
)

// Figures of the estimate of a request's input. It errs upwards for English, most other
// languages and code; a model's factor in models.yaml corrects it.
const (
	BytesPerToken     = 3    // bytes of text for a token
	ImageTokens       = 1600 // an image of any size; more in some models' highest resolution
	FileBytesPerToken = 10   // bytes of a document or of audio for a token
)

// media is what is in a body beside text.
type media struct {
	images int64
	bytes  int64 // of documents and audio
	text   int64 // bytes of strings that are no text
}

// estimate returns a body's tokens: of every name, string, number and word in it, for
// names and punctuation stand for what the provider adds to each message. What the provider
// adds by itself is not in it: results of its tools, files that it fetches, and what it has
// kept.
func (c *check) estimate() int64 {
	total := -c.media.text
	for i := range c.nodes {
		n := &c.nodes[i]
		total += int64(n.keyEnd - n.key)
		switch n.kind {
		case text:
			total += size(c.raw(int32(i)))
		case number, boolean:
			total += int64(n.to - n.from)
		}
	}
	return per(total, BytesPerToken) + c.media.images*ImageTokens + per(c.media.bytes, FileBytesPerToken)
}

func per(bytes, each int64) int64 { return (bytes + each - 1) / each }

// size is about the number of bytes of a string's text.
func size(quoted []byte) int64 {
	n := int64(len(quoted) - 2)
	for rest := quoted; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			return n
		}
		if rest[at+1] == 'u' {
			n -= 3 // six bytes for a rune of at most three
		} else {
			n--
		}
		rest = rest[at+2:]
	}
}

// inline checks a value that is data or a URL.
func (c *check) inline(i int32, r rule, granted bool) *Refusal {
	switch c.nodes[i].kind {
	case object:
		return c.walk(i, granted)
	case text:
		if c.begins(i, "data:") {
			c.count(i, c.begins(i, "data:image/"))
			return nil
		}
		if r.bare && strings.Trim(c.str(i), base64Alphabet) == "" {
			c.count(i, false)
			return nil
		}
	}
	c.media.images++
	c.need(r.needs)
	return nil
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"

// blob counts the bytes of a source of Anthropic's.
func (c *check) blob(parent, i int32) {
	at, ok := c.member(parent, "media_type")
	if kind := ""; ok && c.nodes[i].kind == text {
		if kind = c.str(at); !strings.HasPrefix(kind, "text/") {
			c.count(i, strings.HasPrefix(kind, "image/"))
		}
	}
}

func (c *check) count(i int32, image bool) {
	n := size(c.raw(i))
	c.media.text += n
	if image {
		c.media.images++
		return
	}
	c.media.bytes += n
}
