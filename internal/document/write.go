package document

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Node is a part of a document that is written: a text, keys or items. A node without all of
// them is its comments only.
type Node struct {
	Above []string // comments, each a line before it
	Key   string   // empty: an item of a list
	Text  string   // the value as YAML has it, see Quoted; empty: Nodes
	Note  string   // a comment behind it
	Nodes []Node   // keys or items below it
}

// YAML writes keys or items. YAML of a library would show more characters as they are, some of
// which change a terminal.
func YAML(nodes []Node) []byte {
	var text strings.Builder
	write(&text, nodes, "")
	return []byte(text.String())
}

func write(to *strings.Builder, nodes []Node, indent string) {
	for _, n := range nodes {
		for _, comment := range n.Above {
			fmt.Fprintf(to, "%s# %s\n", indent, Shown(comment))
		}
		if n.Key == "" && n.Text == "" && len(n.Nodes) == 0 {
			continue
		}
		head := "-"
		if n.Key != "" {
			head = n.Key + ":"
		}
		line := strings.TrimSuffix(head+" "+n.Text, " ")
		if n.Note != "" {
			line += " # " + Shown(n.Note)
		}
		fmt.Fprintln(to, indent+line)
		write(to, n.Nodes, indent+"  ")
	}
}

// Items are a list of texts, which are quoted. note is the comment behind an item.
func Items(texts []string, note func(text string) string) (nodes []Node) {
	for _, text := range texts {
		nodes = append(nodes, Node{Text: Quoted(text), Note: note(text)})
	}
	return nodes
}

// Quoted writes a text as YAML reads it back: Go's escapes are YAML's, too.
func Quoted(text string) string { return strconv.QuoteToASCII(text) }

// Shown is a text without anything that ends a comment or changes a terminal.
func Shown(text string) string {
	return strings.Map(func(c rune) rune {
		if Unprintable(c) {
			return '?'
		}
		return c
	}, text)
}

// Unprintable reports whether a character could end a comment or change a terminal.
func Unprintable(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }
