package learn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clove.run/clove/internal/document"
	"clove.run/clove/policies/settings"
)

// text writes the document.
func (l *learner) text() []byte {
	nodes := []document.Node{
		{Above: l.head(), Key: "version", Text: "1"},
		{Key: "name", Text: document.Quoted(l.doc.Name)},
		{Key: "description", Text: document.Quoted(l.doc.Description)},
		{Key: "extends", Text: document.Quoted(l.doc.Extends)},
	}
	for _, place := range slices.Sorted(maps.Keys(l.doc.Widen)) {
		nodes = below(nodes, "widen", document.Node{Key: place, Text: document.Quoted(l.doc.Widen[place])})
	}
	for i := range settings.All() {
		s := &settings.All()[i]
		if node, written := l.node(s); written {
			if holder, name, nested := strings.Cut(s.Key, "."); nested {
				node.Key = name
				nodes = below(nodes, holder, node)
			} else {
				nodes = append(nodes, node)
			}
		}
		if s.Name() == settings.Allow && len(l.refused) > 0 {
			nodes = below(nodes, "network", document.Node{Above: prefixed("refused in the run, and not allowed here: ", l.refused)})
		}
	}
	return document.YAML(nodes)
}

// below adds a node to the last one, which has this key or is made with it.
func below(nodes []document.Node, key string, node document.Node) []document.Node {
	if nodes[len(nodes)-1].Key != key {
		nodes = append(nodes, document.Node{Key: key})
	}
	last := &nodes[len(nodes)-1]
	last.Nodes = append(last.Nodes, node)
	return nodes
}

// node is a setting of the document. A value that the extended document has, too, is left out,
// but for one that was learned.
func (l *learner) node(s *settings.Setting) (node document.Node, written bool) {
	texts, parent := l.doc.Values[s.Name()], l.parent.Values[s.Name()]
	why, learned := l.why[s.Key]
	note := func(entry string) string { return cut(l.why[s.Key+"."+entry], 400) }
	node.Key = s.Key
	switch s.Form {
	case settings.Amounts:
		for _, entry := range texts {
			name, text, _ := strings.Cut(entry, "=")
			if _, learned := l.why[s.Key+"."+name]; learned || !slices.Contains(parent, entry) {
				node.Nodes = append(node.Nodes, document.Node{Key: name, Text: plain(text), Note: note(name)})
			}
		}
		return node, len(node.Nodes) > 0
	case settings.List:
		node.Nodes = document.Items(texts, note)
	case settings.Ports:
		for _, port := range texts {
			node.Nodes = append(node.Nodes, document.Node{Text: port})
		}
	default:
		node.Text, node.Note = plain(l.doc.Text(s.Name())), cut(why, 400)
	}
	if s.Name() == settings.Seccomp {
		node.Above = l.calls()
	}
	return node, len(texts) > 0 && (learned || !slices.Equal(texts, parent))
}

// head says what the document was made from, and what is not in it.
func (l *learner) head() (lines []string) {
	for _, r := range l.seen.Runs {
		if !r.Failed() {
			lines = append(lines, fmt.Sprintf("learned from the run %s, which ended well", r.Name))
			continue
		}
		lines = append(lines, fmt.Sprintf("LEARNED FROM A RUN THAT FAILED: %s ended as %s, with exit status %d; what it did not come to is not allowed", r.Name, r.Status, r.ExitCode))
	}
	lines = append(lines, prefixed("INCOMPLETE: ", l.seen.Incomplete)...)
	lines = append(lines, "another run may take another path: learn several, and fold them with clove policy learn --merge",
		"not learned: variables, grants, budgets and published ports; give them with the flags of clove run")
	lines = append(lines, l.executed()...)
	if l.unread != "" {
		lines = append(lines, "no list of what may be read: "+l.unread)
	}
	return lines
}

// prefixed puts the same text before each line.
func prefixed(text string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = text + line
	}
	return all
}

// plain quotes what YAML would read as something else than the text.
func plain(value string) string {
	if strings.IndexFunc(value, func(c rune) bool {
		return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) >= 0 {
		return document.Quoted(value)
	}
	return value
}

// calls says why each group of system calls is in the filter.
func (l *learner) calls() (lines []string) {
	for _, g := range l.needs.Groups {
		lines = append(lines, fmt.Sprintf("system calls, %s: %s %s used; minimal does without: %s", g.Name, strings.Join(g.Used, " "), were(len(g.Used)), g.Reason))
	}
	return lines
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// String is an observation in one line.
func (o Observation) String() string {
	return fmt.Sprintf("%d programs, %d files written, %d read, %d system calls beyond minimal, %d targets", len(o.Executed), len(o.Written), len(o.Read), len(o.Calls), len(o.Targets))
}
