package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nested objects and arrays of a document: json.Unmarshal recurses into
// them.
const maxDepth = 64

// folded is how deep keys are compared without their case: a batch, a request,
// its parameters.
const folded = 3

// Examine goes through all of a document, which has to be one object or array, and
// returns how many elements the outermost array has; 0 for an object. Input that two
// readers could read differently is an error: text that is not UTF-8, a key that is there
// twice. So are values that nest more than maxDepth deep.
func Examine(line []byte) (elements int, err error) { return ExamineWithin(line, maxDepth) }

// ExamineWithin is Examine for a document that nests at most depth deep.
func ExamineWithin(line []byte, depth int) (elements int, err error) {
	if !utf8.Valid(line) {
		return 0, errors.New("it is not UTF-8")
	}
	// Half a surrogate pair, which UTF-8 cannot have, may be escaped.
	w := walker{jsontext.NewDecoder(bytes.NewBuffer(line), jsontext.AllowInvalidUTF8(true)), depth, nil}
	for {
		token, err := w.ReadToken()
		if err == nil {
			err = w.take(token)
		} else {
			err = unreadable(err)
		}
		if err != nil {
			return 0, err
		}
		switch w.StackDepth() {
		case 0:
			if rest := line[w.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
				return 0, errors.New("there is something behind it")
			}
			return elements, nil
		case 1:
			if kind, n := w.StackIndex(1); kind == '[' {
				elements = int(n)
			}
		}
	}
}

// unreadable is why the decoder stopped.
func unreadable(err error) error {
	syntax := new(jsontext.SyntacticError)
	if errors.As(err, &syntax) && syntax.Err == jsontext.ErrDuplicateName {
		return twice(syntax.JSONPointer.LastToken())
	}
	return errors.New("it is not JSON")
}

func twice(key string) error { return fmt.Errorf("the key %.64q is there twice", key) }

// walker goes through a document. The decoder sees to the grammar, and finds keys that are the
// same to the letter.
type walker struct {
	*jsontext.Decoder
	depth int               // at most
	keys  []map[string]bool // of the objects whose keys are folded, by their depth
}

// take looks at a token.
func (w *walker) take(token jsontext.Token) error {
	depth := w.StackDepth()
	switch kind := token.Kind(); {
	case kind == '}' || kind == ']':
		return nil
	case depth == 0:
		return errors.New("it is neither an object nor an array")
	case kind == '{' || kind == '[':
		if depth > w.depth {
			return fmt.Errorf("it nests more than %d deep", w.depth)
		}
		if depth <= folded {
			w.keys = append(w.keys[:depth-1], nil)
		}
		return nil
	}
	if kind, n := w.StackIndex(depth); kind == '{' && n%2 == 1 && depth <= folded {
		if n == 1 {
			w.keys[depth-1] = map[string]bool{}
		}
		return fold(token.String(), w.keys[depth-1])
	}
	return nil
}

// fold takes in a key of the request or its parameters.
//
// Go's decoder takes "Run" for "run", also beside it, and "ſignal" for "signal": the meaning of a
// request must not depend on its reader, so there two keys may not differ in what it folds alone.
// Deeper there are names of the caller's own.
func fold(key string, seen map[string]bool) error {
	form := strings.Map(foldRune, key)
	if seen[form] {
		return twice(key)
	}
	seen[form] = true
	return nil
}

// foldRune returns the least rune that encoding/json takes for the same: for "k" also the sign of
// Kelvin, for "s" also the long s.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
