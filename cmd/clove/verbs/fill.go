package verbs

import (
	"fmt"
	"reflect"
	"strings"
)

// Input is a placeholder or a flag of usage lines that fills a field of a method's parameters.
type Input struct {
	Field string // its Go name; empty: it fills none, and the command reads it by itself
	// Read makes the field's value of what was given. nil: a switch is true, one text is the value, and a
	// list has all.
	Read func(texts []string) (any, error)
}

// One is Read for an input that is given once.
func One[T any](read func(text string) (T, error)) func([]string) (any, error) {
	return func(texts []string) (any, error) { return read(texts[0]) }
}

// Given is what a command line says for one placeholder or flag.
type Given struct {
	Name  string // as in Usage
	Texts []string
}

// Fill sets fields of params, which is a pointer, in the order of given. A flag that inputs does not have is an error:
// it would be ignored. A placeholder that it does not have fills none. An error of Read is returned as it is.
func Fill(params any, inputs map[string]Input, given []Given) error {
	for _, g := range given {
		input, known := inputs[g.Name]
		if flag := strings.HasPrefix(g.Name, "--"); flag && !known {
			return fmt.Errorf("%s has no row among the inputs of commands", g.Name)
		}
		if input.Field == "" || len(g.Texts) == 0 {
			continue
		}
		value := any(g.Texts)
		if input.Read != nil {
			read, err := input.Read(g.Texts)
			if err != nil {
				return err
			}
			value = read
		}
		if err := Set(params, input.Field, value); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	return nil
}

// Set sets a field of params, which is a pointer, to value, or lets it point to value. Of a list of texts, a
// field that is a text gets the first, and a switch is set by it.
func Set(params any, field string, value any) error {
	to, from := reflect.ValueOf(params).Elem().FieldByName(field), reflect.ValueOf(value)
	if !to.IsValid() {
		return fmt.Errorf("%T has no field %s", params, field)
	}
	if to.Kind() == reflect.Pointer && from.Kind() != reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	if texts, is := value.([]string); is && to.Kind() == reflect.Bool {
		from = reflect.ValueOf(texts[0] == "true")
	} else if is && to.Kind() == reflect.String {
		from = reflect.ValueOf(texts[0])
	}
	if from.Kind() != to.Kind() || !from.CanConvert(to.Type()) {
		return fmt.Errorf("%T cannot be %s of %T", value, field, params)
	}
	to.Set(from.Convert(to.Type()))
	return nil
}
