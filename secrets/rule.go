package secrets

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Rule allows requests with one method, or each, whose path matches a pattern. In a pattern * stands for a part
// of one segment, and ** as a segment for any number of them, none too.
type Rule struct {
	method   string // "*": each
	segments []string
}

// ParseRule reads a rule, such as "POST /repos/acme/*/issues". Its pattern is of paths in the form of Path.
func ParseRule(text string) (r Rule, err error) {
	method, pattern, both := strings.Cut(text, " ")
	bad := strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" && method != "*"
	if !both || method == "" || bad || len(text) > 512 {
		return r, fmt.Errorf("%.80q is no rule: write a method and a pattern, for example GET /repos/** for all paths below", text)
	}
	if path, perr := Path(pattern); perr != nil || path != pattern {
		return r, fmt.Errorf("%.80q is no pattern of paths: without escapes, it has no segment . or .. and no empty one in it", pattern)
	}
	return Rule{method, strings.Split(pattern[1:], "/")}, nil
}

// Allows reports whether the rule allows a request. path is in the form of Path.
func (r Rule) Allows(method, path string) bool {
	return (r.method == "*" || r.method == method) && match(r.segments, strings.Split(strings.TrimPrefix(path, "/"), "/"))
}

// Permits reports whether the rules of a secret allow a request. path is in the form of Path.
func (t Terms) Permits(method, path string) bool {
	return len(t.Allow) == 0 || slices.ContainsFunc(t.Allow, func(text string) bool {
		r, err := ParseRule(text)
		return err == nil && r.Allows(method, path)
	})
}

func match(pattern, path []string) bool {
	for i, segment := range pattern {
		if segment == "**" {
			for skip := range len(path) - i + 1 {
				if match(pattern[i+1:], path[i+skip:]) {
					return true
				}
			}
			return false
		}
		if i >= len(path) || !matchSegment(segment, path[i]) {
			return false
		}
	}
	return len(pattern) == len(path)
}

// matchSegment matches the parts between the stars from left to right, and the last one at the end.
func matchSegment(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, found := strings.CutPrefix(text, first)
	for found && star {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(text, part)
		}
		_, text, found = strings.Cut(text, part)
	}
	return found
}

// errPath says which paths servers read differently.
var errPath = errors.New("servers differ on such a path: no . and .. and no empty segment, no escaped slash, dot or percent sign, no backslash and no control character")

// Path is the path of a request decoded once, which rules are matched with. A path that two servers could take
// for different ones is refused.
func Path(escaped string) (string, error) {
	path, err := url.PathUnescape(escaped)
	if err != nil || !strings.HasPrefix(escaped, "/") {
		return "", errPath
	}
	lower := strings.ToLower(escaped)
	for _, escape := range []string{"%2f", "%5c", "%2e", "%25"} {
		if strings.Contains(lower, escape) {
			return "", errPath
		}
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == 0xfffd }) {
		return "", errPath
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		name, _, _ := strings.Cut(segment, ";") // some servers take the rest for parameters
		if name == "." || name == ".." || segment == "" && i < len(segments)-1 {
			return "", errPath
		}
	}
	return path, nil
}
