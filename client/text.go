package client

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"clove.run/clove/agent"
)

// checkText rejects parameters with text that JSON cannot carry: encoding/json would replace its
// bytes, and the call would be about another file or run. A type with a JSON form of its own
// (agent.RawString) answers for itself.
func checkText(field string, v reflect.Value) error {
	if !v.IsValid() || v.Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &agent.Error{Kind: agent.KindInvalid, Step: field, Message: fmt.Sprintf("%.64q is not UTF-8", v.String()),
				Hint: "only arguments, variables and paths inside may have other bytes: rename it"}
		}
	case reflect.Pointer, reflect.Interface:
		return checkText(field, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if err := checkText(strings.Trim(field+"."+name, "."), v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			if err := checkText(field, key); err != nil {
				return err
			}
			if err := checkText(field, value); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 { // base64
			return nil
		}
		for i := range v.Len() {
			if err := checkText(field, v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
