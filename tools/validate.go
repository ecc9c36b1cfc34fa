package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Validate checks a definition that a user has written: a KindCommand at PlaceAgent. Whether the schemas
// are JSON Schema is checked where they are used.
func (d Definition) Validate() error {
	if err := checkName(d.Name); err != nil {
		return err
	}
	if _, taken := Builtin(d.Name); taken {
		return fmt.Errorf("name: there is a built-in tool %s", d.Name)
	}
	switch {
	case strings.TrimSpace(d.Description) == "":
		return errors.New("description is missing: a model chooses tools by it")
	case len(d.Description)+len(d.Title) > MaxDescription:
		return fmt.Errorf("description has more than %d bytes", MaxDescription)
	case !utf8.ValidString(d.Description) || !utf8.ValidString(d.Title):
		return errors.New("description is no valid UTF-8")
	case d.Kind != KindCommand || d.Place != PlaceAgent:
		return errors.New("run: a tool of a user's is a command in the caller's sandbox")
	case d.Timeout < 0 || d.Timeout > MaxTimeout:
		return fmt.Errorf("timeout: at most %s", MaxTimeout)
	}
	for name, schema := range map[string]json.RawMessage{"arguments": d.Arguments, "result": d.Result} {
		if err := checkSchema(name, schema); err != nil {
			return err
		}
	}
	return ValidateCommand(d.Command, d.Arguments)
}

// checkName refuses what is no name of a tool. Some clients allow no dot.
func checkName(name string) error {
	if name == "" || len(name) > MaxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return fmt.Errorf("name: %.64q is not 1 to %d letters, digits, - and _", name, MaxName)
	}
	if strings.HasPrefix(name, "clove_") {
		return errors.New("name: clove_ begins the names of clove's own services")
	}
	return nil
}

// checkSchema refuses what cannot be a schema of an object.
func checkSchema(name string, schema json.RawMessage) error {
	if len(schema) == 0 && name == "result" {
		return nil
	}
	var top struct {
		Type string `json:"type"`
	}
	switch err := json.Unmarshal(schema, &top); {
	case len(schema) > MaxSchema:
		return fmt.Errorf("%s: a schema has at most %d bytes", name, MaxSchema)
	case err != nil || top.Type != "object":
		return fmt.Errorf("%s is not a JSON Schema with type: object", name)
	}
	return nil
}

// MostTime is how long a call of a tool may take.
func (d Definition) MostTime() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return DefaultTimeout
}
