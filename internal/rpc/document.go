package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nested objects and arrays of a document: json.Unmarshal recurses into
// them.
const maxDepth = 64

// folded is how deep keys are compared without their case: a batch, a request,
// its parameters.
const folded = 3

// Examine goes through all of a document, which has to be one object or array, and
// returns how many elements the outermost array has; 0 for an object. What two readers
// could take for two things is an error: text that is not UTF-8, a key that is there
// twice. So is what nests more than maxDepth deep.
func Examine(line []byte) (elements int, err error) { return ExamineWithin(line, maxDepth) }

// ExamineWithin is Examine for a document that nests at most depth deep.
func ExamineWithin(line []byte, depth int) (elements int, err error) {
	if !utf8.Valid(line) {
		return 0, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	// Numbers are not looked at, and one that no float64 holds is no mistake here.
	decoder.UseNumber()
	w := walker{depth: depth}
	for begun := false; ; begun = true {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && len(w.open) == 0 && begun {
			return w.elements, nil
		}
		if err != nil {
			return 0, errors.New("it is not JSON")
		}
		if err := w.take(token); err != nil {
			return 0, err
		}
		if len(w.open) == 0 && decoder.More() {
			return 0, errors.New("there is something behind it")
		}
	}
}

// nesting is one object or array that is being walked through.
type nesting struct {
	keys  map[string]bool // nil: an array
	value bool            // of an object: a key was read, its value comes
}

// key takes in a key of an object that is depth deep.
//
// Go's decoder takes "Run" for "run", also beside it, and "ſignal" for "signal": what a request
// says must not depend on who reads it, so in the request and its parameters two keys may not
// differ in what it folds alone. Deeper there are names of the caller's own.
func (n *nesting) key(key string, depth int) error {
	if depth <= folded {
		key = strings.Map(foldRune, key)
	}
	if n.keys[key] {
		return fmt.Errorf("the key %.64q is there twice", key)
	}
	n.keys[key], n.value = true, true
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

// walker is the way through a document: what is open at the moment.
type walker struct {
	depth    int // at most
	open     []nesting
	elements int // of the outermost array
}

// take goes one token on. The decoder has seen to the grammar.
func (w *walker) take(token json.Token) error {
	delim, isDelim := token.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		w.open = w.open[:len(w.open)-1]
		return nil
	}
	if len(w.open) > 0 {
		top := &w.open[len(w.open)-1]
		if top.keys != nil && !top.value {
			return top.key(token.(string), len(w.open)) // the decoder allows nothing else
		}
		if top.keys == nil && len(w.open) == 1 {
			w.elements++
		}
		top.value = false
	}
	if isDelim {
		return w.enter(delim)
	}
	if len(w.open) == 0 {
		return errors.New("it is neither an object nor an array")
	}
	return nil
}

// enter begins an object or array.
func (w *walker) enter(delim json.Delim) error {
	if len(w.open) == w.depth {
		return fmt.Errorf("it nests more than %d deep", w.depth)
	}
	next := nesting{}
	if delim == '{' {
		next.keys = map[string]bool{}
	}
	w.open = append(w.open, next)
	return nil
}
