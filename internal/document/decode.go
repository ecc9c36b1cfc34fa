package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"clove.run/clove/agent"
)

// Decode reads one YAML document into a struct with json tags. An empty text changes nothing.
// Values of types with a method UnmarshalJSON are read by it; an agent.Error of theirs gets
// the place in front.
func Decode(text []byte, into any) error {
	if !utf8.Valid(text) {
		return Wrong("", "save it as UTF-8", "it is no text in UTF-8")
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return Wrong("", "indent with spaces, and write a blank behind each colon", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if decoder.Decode(&second) == nil {
		return Wrong("", "remove what follows the line ---", "line %d: there is a second document", second.Line)
	}
	r := reader{places: map[string]string{}}
	value, err := r.value("", document.Content[0], reflect.TypeOf(into).Elem())
	if err != nil {
		return err
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return Wrong("", "", "%v", err)
	}
	return r.typed(json.Unmarshal(plain, into))
}

// reader turns nodes into what encoding/json writes, and remembers where each place is.
type reader struct {
	places map[string]string // line and column, by place as limits.memory; those in lists without their number
}

// value converts a node, whose keys are compared with the fields of t: encoding/json would
// accept them in any case, and name neither their line nor the nearest one.
func (r reader) value(at string, node *yaml.Node, t reflect.Type) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, seen := r.places[plainPlace(at)]; !seen {
		r.places[plainPlace(at)] = positionOf(node)
	}
	if node.Anchor != "" || node.Kind == yaml.AliasNode {
		return nil, r.Wrong(node, at, "write the value out", "anchors are not read here")
	}
	switch tag := node.ShortTag(); {
	case node.Kind == yaml.MappingNode && tag != "!!map", node.Kind == yaml.SequenceNode && tag != "!!seq":
		return nil, r.tagged(node, at)
	}
	if what, wanted := contentOf(node), kinds[t.Kind()]; what != "" && wanted != "" && !fits(node, t) {
		return nil, Wrong(r.placed(plainPlace(at)), "", "%s stands where %s belongs", what, wanted)
	}
	switch node.Kind {
	case yaml.MappingNode:
		return r.mapping(at, node, t)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		inner := reflect.TypeFor[any]() // of the wrong type: json.Unmarshal reports it
		if t.Kind() == reflect.Slice {
			inner = t.Elem()
		}
		for i, item := range node.Content {
			value, err := r.value(Join(at, strconv.Itoa(i)), item, inner)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return r.scalar(at, node)
}

func (r reader) mapping(at string, node *yaml.Node, t reflect.Type) (any, error) {
	known, seen, result := fields(t), map[string]int{}, map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, inner := node.Content[i], reflect.TypeFor[any]()
		key := name.Value
		if name.Kind != yaml.ScalarNode {
			return nil, r.Wrong(name, at, "a key is a word", "a list or a map stands where a key belongs")
		}
		if name.Anchor != "" || name.Style&yaml.TaggedStyle != 0 {
			return nil, r.Wrong(name, at, "write the key alone", "anchors and tags of keys are not read here")
		}
		if before := seen[key]; before > 0 {
			return nil, r.Wrong(name, at, "keep one of them", "the key %.64q stands in line %d already", key, before)
		}
		seen[key] = name.Line
		switch {
		case t.Kind() == reflect.Map:
			inner = t.Elem()
		case t.Kind() == reflect.Interface: // any value
		case t.Kind() == reflect.Struct && known[key] == nil:
			names := slices.Sorted(maps.Keys(known))
			return nil, r.Wrong(name, at, Meant(key, names, "the keys here are "+strings.Join(names, ", ")), "there is no key %.64q", key)
		case t.Kind() == reflect.Struct:
			inner = known[key]
		}
		value, err := r.value(Join(at, key), node.Content[i+1], inner)
		if err != nil {
			return nil, err
		}
		result[key] = value
	}
	return result, nil
}

// contentOf is what a node has, in words; empty: nothing that a field could not hold.
func contentOf(node *yaml.Node) string {
	switch tag := node.ShortTag(); {
	case node.Kind == yaml.MappingNode:
		return values["object"]
	case node.Kind == yaml.SequenceNode:
		return values["array"]
	case tag == "!!bool":
		return values["bool"]
	case tag == "!!int", tag == "!!float":
		return values["number"]
	case tag == "!!str", tag == "!!timestamp":
		return values["string"]
	}
	return ""
}

// fits reports whether a type holds what a node has. encoding/json finds the same, but does not
// name the key of a map. A type that reads itself decides by itself, and so does a number's range.
func fits(node *yaml.Node, t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	tag := node.ShortTag()
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return node.Kind == yaml.MappingNode
	case reflect.Slice:
		return node.Kind == yaml.SequenceNode
	case reflect.String:
		return tag == "!!str" || tag == "!!timestamp"
	case reflect.Bool:
		return tag == "!!bool"
	}
	return tag == "!!int" || tag == "!!float"
}

// scalar keeps numbers as they are written: a binary fraction would not be what a price says.
// Times are text here.
func (r reader) scalar(at string, node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null", "!!bool":
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, r.Wrong(node, at, "", "%v", err)
		}
		return value, nil
	case "!!int", "!!float":
		if json.Valid([]byte(node.Value)) {
			return json.Number(node.Value), nil
		}
		var value any // 0x10, 1_000
		if err := node.Decode(&value); err != nil {
			return nil, r.Wrong(node, at, "", "%v", err)
		}
		if _, err := json.Marshal(value); err != nil {
			return nil, r.Wrong(node, at, "write a number", "%.64s is none", node.Value)
		}
		return value, nil
	case "!!str", "!!timestamp":
		return node.Value, nil
	}
	return nil, r.tagged(node, at)
}

func (r reader) tagged(node *yaml.Node, at string) error {
	return r.Wrong(node, at, "remove the tag", "values of the type %.64s are not read here", node.Tag)
}

// Keys returns all keys of a type and of what it holds, for tests that compare a type with
// its documentation.
func Keys(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for key, inner := range fields(t) {
		all[key] = true
		maps.Copy(all, Keys(inner))
	}
	return all
}

// fields returns the keys of a struct; those of embedded structs are its own. A field without
// a json tag is no key, although encoding/json would fill it.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, field := range fieldsOf(t) {
		known[field.key] = field.Type
	}
	return known
}

// keyed is a field with its key.
type keyed struct {
	reflect.StructField
	key string
}

func fieldsOf(t reflect.Type) (all []keyed) {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			all = append(all, fieldsOf(field.Type)...)
		case name != "" && name != "-":
			all = append(all, keyed{field, name})
		}
	}
	return all
}

// typed says in the document's words that a value has the wrong type: encoding/json names
// Go's types, and itself.
func (r reader) typed(err error) error {
	var mismatch *json.UnmarshalTypeError
	var known *agent.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &mismatch):
		what, number, _ := strings.Cut(mismatch.Value, " ")
		return Wrong(r.placed(unembedded(mismatch.Field)), "", "%s stands where %s belongs", strings.TrimSpace(values[what]+" "+number), kinds[mismatch.Type.Kind()])
	}
	return Wrong("", "", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// unembedded leaves names of embedded structs out of a place: they are Go's, and no key begins with a
// capital.
func unembedded(field string) string {
	for first, rest, more := strings.Cut(field, "."); more && first != "" && first[0] >= 'A' && first[0] <= 'Z'; first, rest, more = strings.Cut(field, ".") {
		field = rest
	}
	return field
}

// placed puts line and column before a place as encoding/json names it. It names places in lists
// without their number.
func (r reader) placed(at string) string {
	if place := r.places[at]; place != "" {
		return strings.TrimSuffix(place+": "+at, ": ")
	}
	return at
}

// values are encoding/json's words for what stands in a document.
var values = map[string]string{"array": "a list", "object": "a map", "string": "text", "number": "the number", "bool": "true or false"}

// kinds are what fields hold.
var kinds = map[reflect.Kind]string{reflect.String: "text", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Uint16: "a whole number from 0 to 65535",
	reflect.Float64: "a number", reflect.Bool: "true or false", reflect.Struct: "a map of keys", reflect.Map: "a map", reflect.Slice: "a list"}

// Wrong is an error about one node.
func (r reader) Wrong(node *yaml.Node, at, hint, format string, arguments ...any) error {
	place := positionOf(node)
	if at != "" {
		place += ": " + at
	}
	return Wrong(place, hint, format, arguments...)
}

// positionOf is where a node begins, as editors count.
func positionOf(node *yaml.Node) string {
	return fmt.Sprintf("line %d, column %d", node.Line, node.Column)
}

// Wrong is an error about one place of a document, as providers.openai.url.
func Wrong(at, hint, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	if at != "" {
		message = at + ": " + message
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: message, Hint: hint}
}

// Join is the place of a key below a place: providers.openai and url. The top has no name.
func Join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// plainPlace leaves numbers of lists out of a place, as encoding/json does.
func plainPlace(at string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(at, "."), func(part string) bool {
		_, err := strconv.Atoi(part)
		return err == nil
	}), ".")
}
