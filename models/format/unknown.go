package format

import (
	"slices"
	"strings"
	"unicode"
)

// parts make a name suspicious wherever they stand in it, words only as a whole word of it.
// They are names of what could reach the network, name something that the provider keeps,
// choose a tool or another model, or change how much is answered.
var (
	parts = []string{
		"url", "http", "uuid", "file", "tool", "search", "model", "plugin", "connector", "server", "endpoint", "webhook", "callback", "container", "session",
		"conversation", "template", "provider", "fallback", "fetch", "browse", "retriev", "interpreter", "execut", "predict", "beam",
	}
	words = []string{
		"id", "ids", "uri", "uris", "ref", "href", "link", "links", "type", "types", "host", "hosts", "port", "path", "paths", "store", "stored", "save", "memory",
		"web", "mcp", "code", "agent", "agents", "skill", "skills", "max", "best", "api", "base", "proxy", "header", "headers", "auth", "authorization", "secret",
	}
)

// manyNames bounds the unknown fields of one object: each is compared with all others.
const manyNames = 16

// unknown refuses a field without a row unless nothing about it is suspicious, and a name
// that differs from another only in case. Others holds the unknown names beside it.
func (c *check) unknown(i int32, others *[]string) *Refusal {
	name := c.name(i)
	folded := fold(name)
	if c.table.miscased(name) || slices.Contains(*others, folded) {
		return c.refuse(i, "the name differs from another only in case")
	}
	if *others = append(*others, folded); len(*others) > manyNames {
		return c.refuse(i, "more than %d unknown fields in one object", manyNames)
	}
	if c.nodes[i].kind == null {
		return nil
	}
	for at := i; at < c.nodes[i].next; at++ {
		if c.ambiguous(at) {
			return c.refuse(at, "two names differ only in case")
		}
		if c.nodes[at].keyEnd > 0 && suspicious(c.name(at)) {
			return c.refuse(at, "an unknown field that could name a URL, an id, a tool or a model")
		}
		if c.nodes[at].kind == text && c.contains(at, "://") {
			return c.refuse(at, "an unknown field with a URL")
		}
	}
	return nil
}

// ambiguous reports whether two names of an object differ only in case.
func (c *check) ambiguous(i int32) bool {
	if c.nodes[i].kind != object {
		return false
	}
	seen := map[string]bool{}
	for child := range c.children(i) {
		name := fold(c.name(child))
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func suspicious(name string) bool {
	low := strings.ToLower(name)
	if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(low, part) }) {
		return true
	}
	return slices.ContainsFunc(split(name), func(word string) bool { return slices.Contains(words, word) })
}

// split returns the words of a name, in lower case: top_k, topK and TopK have the same.
func split(name string) []string {
	var out []string
	from := 0
	flush := func(to int) {
		if from < to {
			out = append(out, strings.ToLower(name[from:to]))
		}
		from = to
	}
	lower := false
	for i, r := range name {
		if !unicode.IsLetter(r) {
			flush(i)
			from = i + len(string(r))
		} else if unicode.IsUpper(r) && lower {
			flush(i)
		}
		lower = unicode.IsLower(r)
	}
	flush(len(name))
	return out
}
