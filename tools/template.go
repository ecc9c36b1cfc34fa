package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Bounds of a template.
const (
	maxTemplate     = 16 << 10 // bytes
	maxTemplateWord = 256      // words
)

// A placeholder is {NAME}. {{NAME}} stands for the text {NAME} itself; all other braces are text.
var placeholders = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{([A-Za-z0-9_-]{1,64})\}\}|\{([A-Za-z0-9_-]{1,64})\}`)
})

// ValidateCommand checks the template of a KindCommand against the schema of its arguments.
func ValidateCommand(template []string, schema json.RawMessage) error {
	size := 0
	for _, word := range template {
		size += len(word)
		if strings.ContainsRune(word, 0) {
			return errors.New("command has a NUL byte")
		}
	}
	switch {
	case len(template) == 0 || template[0] == "":
		return errors.New("command has no program")
	case size > maxTemplate || len(template) > maxTemplateWord:
		return fmt.Errorf("command has more than %d bytes or %d words", maxTemplate, maxTemplateWord)
	case len(pieces(template[0])) != 1 || pieces(template[0])[0].name != "":
		return fmt.Errorf("command: the program %q has a placeholder: only its arguments may have one", template[0])
	}
	if strings.Contains(template[0], "/") && template[0][0] != '/' {
		return fmt.Errorf("command: the program %q must be an absolute path, or a name on PATH", template[0])
	}
	properties, err := propertyTypes(schema)
	if err != nil {
		return err
	}
	for _, word := range template[1:] {
		parts := pieces(word)
		for _, p := range parts {
			types, known := properties[p.name]
			switch {
			case p.name == "":
			case !known:
				return fmt.Errorf("command: the arguments have no property for {%s}", p.name)
			case slices.Contains(types, "object"):
				return fmt.Errorf("command: {%s} is an object, which no word can be: the program may read all arguments as JSON from its stdin", p.name)
			case slices.Contains(types, "array") && len(parts) > 1:
				return fmt.Errorf("command: {%s} is a list, and must be a word of its own, not a part of %q", p.name, word)
			}
		}
	}
	return nil
}

// propertyTypes are the properties of a schema, with the types that they name.
func propertyTypes(schema json.RawMessage) (map[string][]string, error) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, fmt.Errorf("the schema of the arguments: %w", err)
		}
	}
	all := map[string][]string{}
	for name, raw := range s.Properties {
		var one struct {
			Type json.RawMessage `json:"type"`
		}
		_ = json.Unmarshal(raw, &one) // true and false are schemas, too
		var types []string
		if json.Unmarshal(one.Type, &types) != nil {
			var single string
			_ = json.Unmarshal(one.Type, &single) // none, or no type of JSON Schema's
			types = []string{single}
		}
		all[name] = types
	}
	return all, nil
}

// piece is text, or the argument that has a name.
type piece struct{ text, name string }

// pieces takes a word of a template apart; an empty word is one empty piece.
func pieces(word string) (all []piece) {
	at := 0
	text := ""
	for _, m := range placeholders().FindAllStringSubmatchIndex(word, -1) {
		text += word[at:m[0]]
		at = m[1]
		if m[2] >= 0 { // {{NAME}}
			text += word[m[0]+1 : m[1]-1]
			continue
		}
		if text != "" {
			all = append(all, piece{text: text})
		}
		text = ""
		all = append(all, piece{name: word[m[4]:m[5]]})
	}
	if text += word[at:]; text != "" || len(all) == 0 {
		all = append(all, piece{text: text})
	}
	return all
}

// Expand makes the command of a call from a template that ValidateCommand accepts, and from the
// call's arguments, a JSON object. A word with an argument that is absent or null is left out.
// A list as a word of its own becomes as many words.
func Expand(template []string, arguments json.RawMessage) ([]string, error) {
	if len(template) == 0 {
		return nil, errors.New("command has no program")
	}
	values := map[string]any{}
	if len(bytes.TrimSpace(arguments)) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(arguments))
		decoder.UseNumber() // as the caller wrote them
		if err := decoder.Decode(&values); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	command := []string{pieces(template[0])[0].text}
	options := true // a word with - at its beginning may be read as one
	for _, word := range template[1:] {
		words, err := expand(pieces(word), values, options)
		if err != nil {
			return nil, err
		}
		command = append(command, words...)
		options = options && word != "--"
	}
	return command, nil
}

func expand(parts []piece, values map[string]any, options bool) ([]string, error) {
	if list, is := values[parts[0].name].([]any); is && len(parts) == 1 && parts[0].name != "" {
		var words []string
		for _, value := range list {
			text, err := scalar(parts[0].name, value)
			if err == nil {
				err = noOption(parts[0].name, text, options)
			}
			if err != nil {
				return nil, err
			}
			words = append(words, text)
		}
		return words, nil
	}
	word := ""
	for _, p := range parts {
		if p.name == "" {
			word += p.text
			continue
		}
		if values[p.name] == nil {
			return nil, nil
		}
		text, err := scalar(p.name, values[p.name])
		if err != nil {
			return nil, err
		}
		word += text
	}
	if first := parts[0].name; first != "" {
		if err := noOption(first, word, options); err != nil {
			return nil, err
		}
	}
	return []string{word}, nil
}

// noOption refuses what the program would take for an option.
func noOption(name, word string, options bool) error {
	if options && strings.HasPrefix(word, "-") {
		return fmt.Errorf("argument %s: it must not begin with -, because the program would read it as an option", name)
	}
	return nil
}

// scalar is the text of a value that fits into a word.
func scalar(name string, value any) (string, error) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	case bool:
		text = fmt.Sprint(v)
	default:
		return "", fmt.Errorf("argument %s: it must be a text, a number, true or false here", name)
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("argument %s: it has a NUL byte", name)
	}
	return text, nil
}
