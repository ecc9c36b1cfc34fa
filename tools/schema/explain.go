package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// explain says briefly why a value does not fit, by the keywords that most schemas have. Empty:
// another one decided.
func explain(n *node, value any, at string) string {
	name := "the arguments"
	if at != "" {
		name = "argument " + at
	}
	if n.raw == nil {
		return ""
	}
	if want := types(n.raw["type"]); len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return isType(value, t) }) {
		return fmt.Sprintf("%s: it must be %s, and is %s", name, strings.Join(want, " or "), typeOf(value))
	}
	if list, is := n.raw["enum"].([]any); is && !slices.ContainsFunc(list, func(e any) bool { return same(e, value) }) {
		return fmt.Sprintf("%s: it must be one of %s", name, brief(list))
	}
	if want, is := n.raw["const"]; is && !same(want, value) {
		return fmt.Sprintf("%s: it must be %s", name, brief(want))
	}
	var reason string
	switch v := value.(type) {
	case map[string]any:
		return explainObject(n, v, at, name)
	case []any:
		if reason = bound(n, "minItems", "maxItems", float64(len(v)), "elements"); reason == "" {
			return explainItems(n, v, at)
		}
	case string:
		reason = bound(n, "minLength", "maxLength", float64(utf8.RuneCountInString(v)), "characters")
	case float64:
		reason = bound(n, "minimum", "maximum", v, "")
	}
	if reason != "" {
		return name + ": " + reason
	}
	return ""
}

func explainObject(n *node, v map[string]any, at, name string) string {
	required, _ := n.raw["required"].([]any)
	for _, r := range required {
		if field, _ := r.(string); !has(v, field) {
			return fmt.Sprintf("%s: %q is missing", name, field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(v)) {
		sub, known := n.named[field]
		if closed := n.raw["additionalProperties"] == false; !known && closed && len(n.patterns) == 0 {
			return fmt.Sprintf("%s: there is no %.64q; there are %s", name, field, strings.Join(first(slices.Sorted(maps.Keys(n.named))), ", "))
		}
		if !known {
			for _, sub := range n.children["additionalProperties"] {
				if reason := explain(sub, v[field], join(at, field)); reason != "" && len(n.patterns) == 0 {
					return reason
				}
			}
			continue
		}
		if reason := explain(sub, v[field], join(at, field)); reason != "" {
			return reason
		}
	}
	return ""
}

func explainItems(n *node, v []any, at string) string {
	if len(n.children["items"]) != 1 || len(n.children["prefixItems"]) > 0 {
		return ""
	}
	for i, e := range v {
		if reason := explain(n.children["items"][0], e, at+"["+strconv.Itoa(i)+"]"); reason != "" {
			return reason
		}
	}
	return ""
}

// bound compares a number with two keywords.
func bound(n *node, least, most string, is float64, unit string) string {
	if unit != "" {
		unit = " " + unit
	}
	if want, set := n.raw[least].(float64); set && is < want {
		return fmt.Sprintf("it must be at least %v%s, and is %v", want, unit, is)
	}
	if want, set := n.raw[most].(float64); set && is > want {
		return fmt.Sprintf("it must be at most %v%s, and is %v", want, unit, is)
	}
	return ""
}

func has(v map[string]any, field string) bool {
	_, is := v[field]
	return is
}

func join(at, field string) string {
	if len(field) > 64 {
		field = strings.ToValidUTF8(field[:64], "") + "…"
	}
	if at == "" {
		return field
	}
	return at + "." + field
}

func types(of any) (all []string) {
	switch of := of.(type) {
	case string:
		return []string{of}
	case []any:
		for _, t := range of {
			if text, is := t.(string); is {
				all = append(all, text)
			}
		}
	}
	return all
}

func isType(value any, name string) bool {
	number, is := value.(float64)
	if name == "integer" {
		return is && number == float64(int64(number))
	}
	return name == typeOf(value)
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func same(x, y any) bool {
	a, _ := json.Marshal(x) // of decoded JSON
	b, _ := json.Marshal(y)
	return string(a) == string(b)
}

func brief(value any) string {
	text, _ := json.Marshal(value) // of decoded JSON
	if len(text) > 200 {
		return strings.ToValidUTF8(string(text[:200]), "") + "…"
	}
	return string(text)
}

func first(names []string) []string {
	if len(names) > 16 {
		return append(names[:16:16], "others")
	}
	return names
}
