package format

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// parser fills a document. The decoder accepts RFC 8259 and nothing else, and refuses names that
// occur twice in one object.
type parser struct {
	*document
	*jsontext.Decoder
}

// parse reads a whole body. The error is a sentence for the agent.
func parse(body []byte) (*document, error) {
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("the body is not UTF-8")
	}
	// Half a surrogate pair, which UTF-8 cannot have, may be escaped: JavaScript writes it.
	p := &parser{&document{body: body, nodes: make([]node, 0, 64+len(body)/256)}, jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))}
	if err := p.value(node{}); err != nil {
		return nil, err
	}
	if at := p.next(); int(at) < len(body) {
		return nil, unexpected(int64(at))
	}
	return p.document, nil
}

// next is where the next token begins, if the body is JSON.
func (p *parser) next() int32 {
	at := int(p.InputOffset())
	for at < len(p.body) && bytes.IndexByte([]byte(" \t\r\n,:"), p.body[at]) >= 0 {
		at++
	}
	return int32(at)
}

var kinds = map[jsontext.Kind]kind{'n': null, 't': boolean, 'f': boolean, '0': number, '"': text, '[': array, '{': object}

// value reads a value and adds its node, which has its name already, and those inside it.
func (p *parser) value(n node) error {
	if len(p.nodes) >= MaxValues {
		return fmt.Errorf("the body has more than %d values", MaxValues)
	}
	n.from = p.next()
	token, err := p.ReadToken()
	if err != nil {
		return p.refusal(err)
	}
	n.kind = kinds[token.Kind()]
	i := len(p.nodes)
	p.nodes = append(p.nodes, n)
	switch {
	case p.StackDepth() > MaxDepth:
		return fmt.Errorf("the body is nested deeper than %d", MaxDepth)
	case n.kind == object || n.kind == array:
		err = p.inside(n.kind)
	case n.kind == number && int32(p.InputOffset())-n.from > maxNumber:
		return fmt.Errorf("the number at byte %d has more than %d digits", n.from, maxNumber)
	}
	p.nodes[i].to, p.nodes[i].next = int32(p.InputOffset()), int32(len(p.nodes))
	return err
}

// inside reads the values of an object or an array, and its end.
func (p *parser) inside(of kind) error {
	for {
		var n node
		switch next := p.PeekKind(); {
		case next == '}' || next == ']':
			_, err := p.ReadToken()
			return p.refusal(err)
		case of == object:
			n.key = p.next() + 1
			if _, err := p.ReadToken(); err != nil {
				return p.refusal(err)
			}
			n.keyEnd = int32(p.InputOffset()) - 1
			n.escaped = bytes.IndexByte(p.body[n.key:n.keyEnd], '\\') >= 0
		}
		if err := p.value(n); err != nil {
			return err
		}
	}
}

// refusal is a decoder's error as a sentence for the agent.
func (p *parser) refusal(err error) error {
	syntax := new(jsontext.SyntacticError)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax) || syntax.ByteOffset >= int64(len(p.body)):
		return fmt.Errorf("the body ends in the middle")
	case syntax.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("%q occurs twice in one object", short(syntax.JSONPointer.LastToken()))
	}
	return unexpected(syntax.ByteOffset)
}

func unexpected(at int64) error { return fmt.Errorf("the body is not JSON at byte %d", at) }
