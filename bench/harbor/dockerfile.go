package harbor

import (
	"regexp"
	"strings"
)

// instruction is one of a Dockerfile, without its continuation lines.
type instruction struct {
	line int
	name string // in capitals
	text string // behind the name
	body string // of a here-document, with its last line
}

const dockerfile = "environment/Dockerfile"

// hereDocument finds the word that ends one.
const hereDocument = `<<-?\s*["']?([A-Za-z_][A-Za-z0-9_]*)["']?`

// instructions splits a Dockerfile. Comments and blank lines inside a continued instruction do
// not end it.
func instructions(text string) (all []instruction, err error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	here := regexp.MustCompile(hereDocument)
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if directive := strings.ToLower(strings.ReplaceAll(line, " ", "")); strings.HasPrefix(directive, "#escape=") && directive != `#escape=\` {
			return nil, refused(dockerfile, i+1, "another escape character")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		next := instruction{line: i + 1}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			more := strings.TrimRight(lines[i], " \t")
			if trimmed := strings.TrimSpace(more); trimmed == "" || trimmed[0] == '#' {
				continue
			}
			line = strings.TrimSuffix(line, `\`) + more
		}
		line = strings.TrimSuffix(line, `\`)
		name, rest, _ := strings.Cut(strings.Replace(line, "\t", " ", 1), " ")
		next.name, next.text = strings.ToUpper(name), strings.TrimSpace(rest)
		if end := here.FindStringSubmatch(next.text); end != nil && next.name == "RUN" {
			from := i + 1
			for i++; i < len(lines) && strings.TrimLeft(lines[i], "\t") != end[1]; i++ {
			}
			if i == len(lines) {
				return nil, refused(dockerfile, next.line, "its here-document has no end")
			}
			next.body = strings.Join(lines[from:i+1], "\n")
		}
		all = append(all, next)
	}
	return all, nil
}

// words splits a text at blanks outside of quotes, which it removes. Quoting with \ is kept for
// the next character only.
func words(text string) (all []string, whole bool) {
	var word strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if in {
				all = append(all, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if in {
		all = append(all, word.String())
	}
	return all, quote == 0 && !escaped
}
