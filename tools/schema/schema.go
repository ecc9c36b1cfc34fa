package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"clove.run/clove/tools"
)

// maxArgumentsDepth bounds the JSON of arguments.
const maxArgumentsDepth = 64

// Schema is a compiled schema. Its methods may be called at once.
type Schema struct {
	tree     *tree
	compiled *jsonschema.Resolved
}

// dialects are the values of $schema that are known.
var dialects = []string{"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#"}

// Compile reads a schema of arguments. Its errors say what to change.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > tools.MaxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", tools.MaxSchema)
	}
	s, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("the schema: %s", short(err.Error()))
	}
	return s, nil
}

func compile(text json.RawMessage) (*Schema, error) {
	raw, err := decode(text, maxDepth)
	if err != nil {
		return nil, err
	}
	object, _ := raw.(map[string]any)
	dialect, _ := object["$schema"].(string)
	known := false
	for _, d := range dialects {
		known = known || d == dialect
	}
	if !known {
		return nil, fmt.Errorf("$schema %.100q is not known: leave it out, or give %s", dialect, dialects[1])
	}
	s := &Schema{}
	if s.tree, err = plant(raw); err != nil {
		return nil, err
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	s.compiled, err = parsed.Resolve(nil)
	return s, err
}

// Check checks arguments. Its error says which one does not fit, and what is expected.
func (s *Schema) Check(arguments json.RawMessage) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	value, err := decode(arguments, maxArgumentsDepth)
	if err != nil {
		return fmt.Errorf("the arguments: %s", short(err.Error()))
	}
	return s.check(value)
}

func (s *Schema) check(value any) error {
	c := counter{known: map[pair]int{}}
	if _, err := c.cost(s.tree.root, weigh(value)); err != nil {
		return err
	}
	err := s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	if reason := explain(s.tree.root, value, ""); reason != "" {
		return errors.New(reason)
	}
	return fmt.Errorf("the arguments do not fit the schema: %s", short(err.Error()))
}

// decode reads one JSON value of a bounded depth.
func decode(text []byte, most int) (value any, err error) {
	depth, inside, escaped := 0, false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case inside:
			escaped, inside = c == '\\', c != '"'
		case c == '"':
			inside = true
		case c == '{' || c == '[':
			if depth++; depth > most {
				return nil, fmt.Errorf("more than %d levels below each other", most)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("this is no JSON: %w", err)
	}
	return value, nil
}

// short bounds a reason.
func short(text string) string {
	const most = 400
	if len(text) > most {
		text = text[:most] + " …"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
