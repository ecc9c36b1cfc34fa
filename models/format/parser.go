package format

import (
	"bytes"
	"fmt"
)

// parser fills a document. It accepts RFC 8259 and nothing else.
type parser struct {
	*document
	at int
}

func (p *parser) space() {
	for p.at < len(p.body) {
		switch p.body[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) unexpected() error {
	if p.at >= len(p.body) {
		return fmt.Errorf("the body ends in the middle")
	}
	return fmt.Errorf("the body is not JSON at byte %d", p.at)
}

// take reads one byte if it is the wanted one.
func (p *parser) take(want byte) bool {
	if p.at < len(p.body) && p.body[p.at] == want {
		p.at++
		return true
	}
	return false
}

// value reads a value and adds its node, and those inside it.
func (p *parser) value(depth int) error {
	if p.space(); p.at >= len(p.body) {
		return p.unexpected()
	}
	if len(p.nodes) >= MaxValues {
		return fmt.Errorf("the body has more than %d values", MaxValues)
	}
	i := len(p.nodes)
	p.nodes = append(p.nodes, node{from: int32(p.at)})
	kind, err := p.content(i, depth)
	n := &p.nodes[i]
	n.kind, n.to, n.next = kind, int32(p.at), int32(len(p.nodes))
	return err
}

func (p *parser) content(i, depth int) (kind, error) {
	switch p.body[p.at] {
	case '{':
		return object, p.object(i, depth+1)
	case '[':
		return array, p.array(depth + 1)
	case '"':
		_, err := p.string()
		return text, err
	case 't':
		return boolean, p.word("true")
	case 'f':
		return boolean, p.word("false")
	case 'n':
		return null, p.word("null")
	}
	return number, p.number()
}

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.body[p.at:], []byte(word)) {
		return p.unexpected()
	}
	p.at += len(word)
	return nil
}

func (p *parser) array(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("the body is nested deeper than %d", MaxDepth)
	}
	p.at++
	if p.space(); p.take(']') {
		return nil
	}
	for {
		if err := p.value(depth); err != nil {
			return err
		}
		if p.space(); p.take(']') {
			return nil
		}
		if !p.take(',') {
			return p.unexpected()
		}
	}
}

func (p *parser) object(i, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("the body is nested deeper than %d", MaxDepth)
	}
	p.at++
	if p.space(); p.take('}') {
		return nil
	}
	seen := names{document: p.document, object: int32(i)}
	for {
		if err := p.member(&seen, depth); err != nil {
			return err
		}
		if p.space(); p.take('}') {
			return nil
		}
		if !p.take(',') {
			return p.unexpected()
		}
	}
}

func (p *parser) member(seen *names, depth int) error {
	if p.space(); p.at >= len(p.body) || p.body[p.at] != '"' {
		return p.unexpected()
	}
	from := p.at + 1
	escaped, err := p.string()
	if err != nil {
		return err
	}
	to := p.at - 1
	if p.space(); !p.take(':') {
		return p.unexpected()
	}
	i := len(p.nodes)
	if err := p.value(depth); err != nil {
		return err
	}
	n := &p.nodes[i]
	n.key, n.keyEnd, n.escaped = int32(from), int32(to), escaped
	return seen.add(int32(i))
}

// string reads a string and reports whether it has an escape.
func (p *parser) string() (escaped bool, err error) {
	for p.at++; p.at < len(p.body); p.at++ {
		switch b := p.body[p.at]; {
		case b == '"':
			p.at++
			return escaped, nil
		case b == '\\':
			escaped = true
			if !p.escape() {
				return escaped, p.unexpected()
			}
		case b < 0x20:
			return escaped, p.unexpected()
		}
	}
	return escaped, p.unexpected()
}

// escape leaves the position at the last byte of an escape.
func (p *parser) escape() bool {
	if p.at++; p.at >= len(p.body) {
		return false
	}
	switch p.body[p.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
	default:
		return false
	}
	for range 4 {
		if p.at++; p.at >= len(p.body) || !hex(p.body[p.at]) {
			return false
		}
	}
	return true
}

func hex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

func (p *parser) number() error {
	from := p.at
	p.take('-')
	if !p.take('0') && !p.digits() {
		return p.unexpected()
	}
	if p.take('.') && !p.digits() {
		return p.unexpected()
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if !p.digits() {
			return p.unexpected()
		}
	}
	if p.at-from > maxNumber {
		return fmt.Errorf("the number at byte %d has more than %d digits", from, maxNumber)
	}
	return nil
}

func (p *parser) digits() bool {
	from := p.at
	for p.at < len(p.body) && p.body[p.at] >= '0' && p.body[p.at] <= '9' {
		p.at++
	}
	return p.at > from
}
