package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a schema.
const (
	maxDepth      = 64 // of its JSON
	maxSubschemas = 2000
	maxPatterns   = 20_000 // instructions of all regular expressions
)

// How a keyword applies its subschemas.
type applies int

const (
	inPlace    applies = iota // to the same value
	toChildren                // to what is in the value
	byName                    // to the properties of a name
	nowhere                   // it only has them, for references
)

// keyword is one that has subschemas.
type keyword struct {
	applies
	list, names bool // whether its value may be a list of schemas, or an object of them
	one         bool // whether it may be a schema
}

var keywords = map[string]keyword{
	"allOf": {inPlace, true, false, false}, "anyOf": {inPlace, true, false, false}, "oneOf": {inPlace, true, false, false},
	"not": {inPlace, false, false, true}, "if": {inPlace, false, false, true}, "then": {inPlace, false, false, true}, "else": {inPlace, false, false, true},
	"dependentSchemas": {inPlace, false, true, false}, "dependencies": {inPlace, false, true, false},
	"properties": {byName, false, true, false}, "patternProperties": {toChildren, false, true, false},
	"additionalProperties": {toChildren, false, false, true}, "unevaluatedProperties": {toChildren, false, false, true}, "propertyNames": {toChildren, false, false, true},
	"prefixItems": {toChildren, true, false, false}, "items": {toChildren, true, false, true}, "additionalItems": {toChildren, false, false, true},
	"contains": {toChildren, false, false, true}, "unevaluatedItems": {toChildren, false, false, true},
	"$defs": {nowhere, false, true, false}, "definitions": {nowhere, false, true, false}, "contentSchema": {nowhere, false, false, true},
}

// node is a subschema.
type node struct {
	raw      map[string]any // nil: true or false
	same     []*node        // that are applied to the same value, also by references
	children map[string][]*node
	named    map[string]*node // of properties
	patterns map[*regexp.Regexp]*node
	pattern  int // instructions of all its patterns
	weight   int // of what it compares with at each evaluation
	base     *url.URL
}

// tree is a schema with its subschemas by place.
type tree struct {
	root     *node
	all      []*node
	places   map[string]*node // URI and JSON pointer, or URI and anchor
	dynamic  map[string][]*node
	patterns int
}

// plant reads the subschemas of a schema, and where its references lead.
func plant(raw any) (*tree, error) {
	t := &tree{places: map[string]*node{}, dynamic: map[string][]*node{}}
	var err error
	if t.root, err = t.add(raw, &url.URL{}, []string{"#"}); err != nil {
		return nil, err
	}
	for _, n := range t.all {
		if err := t.refer(n); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add adds a subschema, which has a place in each resource that has it.
func (t *tree) add(raw any, base *url.URL, places []string) (*node, error) {
	n := &node{base: base}
	if t.all = append(t.all, n); len(t.all) > maxSubschemas {
		return nil, fmt.Errorf("it has more than %d subschemas", maxSubschemas)
	}
	object, is := raw.(map[string]any)
	if _, simple := raw.(bool); !is && !simple {
		return nil, errors.New("a subschema is neither an object nor true or false")
	}
	n.raw = object
	if id, is := object["$id"].(string); is && !strings.HasPrefix(id, "#") {
		at, err := base.Parse(id)
		if err != nil || at.Fragment != "" {
			return nil, fmt.Errorf("$id %.100q is no URI without a fragment", id)
		}
		n.base = at
		places = append(slices.Clone(places), at.String()+"#")
	}
	for _, place := range places {
		t.places[place] = n
	}
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor, is := object[name].(string); is {
			t.places[withoutFragment(n.base)+"#"+anchor] = n
			if name == "$dynamicAnchor" {
				t.dynamic[anchor] = append(t.dynamic[anchor], n)
			}
		}
	}
	if err := t.measure(n); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if word, known := keywords[name]; known {
			if err := t.descend(n, name, word, places); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// measure weighs what a subschema compares with.
func (t *tree) measure(n *node) error {
	n.weight = 1 + count(n.raw["enum"]) + count(n.raw["const"])
	for _, list := range []string{"required", "type", "dependentRequired"} {
		n.weight += count(n.raw[list])
	}
	for _, name := range []string{"properties", "patternProperties", "dependentSchemas", "dependencies"} { // each is looked up
		object, _ := n.raw[name].(map[string]any)
		n.weight += len(object) / 4
	}
	if text, is := n.raw["pattern"].(string); is {
		_, size, err := t.compile(text)
		if err != nil {
			return err
		}
		n.pattern += size
	}
	return nil
}

// compile makes a regular expression whose size is bounded beforehand.
func (t *tree) compile(text string) (*regexp.Regexp, int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("the pattern %.100q: %w", text, err)
	}
	size := instructions(parsed)
	if t.patterns += size; t.patterns > maxPatterns {
		return nil, 0, fmt.Errorf("its patterns are too large: they have more than %d parts, with repetitions", maxPatterns)
	}
	re, err := regexp.Compile(text)
	return re, size, err
}

func instructions(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxPatterns+1)
}

// count is the number of values in a value.
func count(value any) int {
	total := 1
	switch v := value.(type) {
	case nil:
		return 0
	case string:
		total += len(v) / 64
	case []any:
		for _, e := range v {
			total += max(1, count(e))
		}
	case map[string]any:
		for _, e := range v {
			total += max(1, count(e))
		}
	}
	return total
}

// descend adds the subschemas of a keyword.
func (t *tree) descend(n *node, name string, word keyword, places []string) error {
	value := n.raw[name]
	below := func(sub any, steps ...string) (*node, error) {
		var at []string
		for _, place := range places {
			at = append(at, place+"/"+strings.Join(steps, "/"))
		}
		return t.add(sub, n.base, at)
	}
	keep := func(key string, sub *node) {
		switch word.applies {
		case inPlace:
			n.same = append(n.same, sub)
		case byName:
			n.named[key] = sub
		case toChildren:
			n.children[name] = append(n.children[name], sub)
		}
	}
	if n.children == nil {
		n.children, n.named, n.patterns = map[string][]*node{}, map[string]*node{}, map[*regexp.Regexp]*node{}
	}
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			if !word.list {
				break
			}
			sub, err := below(e, name, strconv.Itoa(i))
			if err != nil {
				return err
			}
			keep("", sub)
		}
		return nil
	case map[string]any:
		if word.names {
			return t.names(n, name, v, below, keep)
		}
	}
	if !word.one {
		return fmt.Errorf("%s has no schemas", name)
	}
	sub, err := below(value, name)
	if err == nil {
		keep("", sub)
	}
	return err
}

// names adds the subschemas of a keyword that has an object of them.
func (t *tree) names(n *node, name string, of map[string]any, below func(any, ...string) (*node, error), keep func(string, *node)) error {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if _, is := of[key].([]any); is && name == "dependencies" { // draft-07: names of properties
			continue
		}
		sub, err := below(of[key], name, pointerEscapes.Replace(key))
		if err != nil {
			return err
		}
		if name != "patternProperties" {
			keep(key, sub)
			continue
		}
		re, size, err := t.compile(key)
		if err != nil {
			return err
		}
		n.patterns[re] = sub
		n.pattern += size
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func withoutFragment(u *url.URL) string {
	at := *u
	at.Fragment, at.RawFragment = "", ""
	return at.String()
}

// refer finds where the references of a subschema lead.
func (t *tree) refer(n *node) error {
	for _, name := range []string{"$ref", "$dynamicRef"} {
		ref, is := n.raw[name].(string)
		if !is {
			continue
		}
		at, err := n.base.Parse(ref)
		if err != nil {
			return fmt.Errorf("%s %.100q is no URI", name, ref)
		}
		to, known := t.places[withoutFragment(at)+"#"+at.Fragment]
		if !known {
			return fmt.Errorf("%s %.100q leads to no subschema inside of it: nothing is loaded", name, ref)
		}
		if anchors := t.dynamic[at.Fragment]; name == "$dynamicRef" && len(anchors) > 0 {
			n.same = append(n.same, anchors...) // any of them
			continue
		}
		n.same = append(n.same, to)
	}
	return nil
}
