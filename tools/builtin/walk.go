package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Bounds of a walk.
const (
	maxVisited = 1_000_000 // entries
	maxFolder  = 100_000   // entries of one folder
	maxDepth   = 100       // folders below each other
)

var errEnough = errors.New("enough")

// walk visits what is below a folder, in the order of names. It follows no link, so it ends.
type walk struct {
	ctx     context.Context
	root    string
	visit   func(name string, e fs.DirEntry) error // name is relative to the root; errEnough ends the walk
	visited int
	omitted int // folders that could not be read, or not wholly
}

// names are the entries of a folder, sorted.
func (w *walk) names(dir string) ([]fs.DirEntry, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, err := file.ReadDir(maxFolder)
	if len(found) == maxFolder {
		w.omitted++
	}
	slices.SortFunc(found, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, err
}

// below visits a folder. Only the root's own failure is an error.
func (w *walk) below(name string, depth int) error {
	found, err := w.names(filepath.Join(w.root, name))
	if err != nil {
		if depth == 0 {
			return err
		}
		w.omitted++
	}
	for _, e := range found {
		if w.visited++; w.visited > maxVisited {
			w.omitted++
			return errEnough
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		at := filepath.Join(name, e.Name())
		if err := w.visit(at, e); err != nil {
			return err
		}
		switch {
		case !e.IsDir() || e.Name() == ".git":
		case depth >= maxDepth:
			w.omitted++
		default:
			if err := w.below(at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// all visits everything below the root.
func (w *walk) all() error {
	if err := w.below("", 0); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// note is a line on folders that were left out.
func (w *walk) note() string {
	if w.omitted == 0 {
		return ""
	}
	return fmt.Sprintf("[%d folders could not be read, or have too much]\n", w.omitted)
}

// GlobArguments are those of glob.
type GlobArguments struct {
	Pattern string `json:"pattern"`
	Cwd     string `json:"cwd"`
	Results int    `json:"max_results"` // 0: 1000
}

// Glob names files whose path matches.
func (b *Box) Glob(ctx context.Context, a GlobArguments) (string, error) {
	pattern, err := globPattern(a.Pattern)
	if err != nil {
		return "", err
	}
	root, err := b.dir(a.Cwd)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	found, more, most := 0, false, or(a.Results, entries, maxEntries)
	w := walk{ctx: ctx, root: root}
	w.visit = func(name string, e fs.DirEntry) error {
		if !pattern.MatchString(name) {
			return nil
		}
		if found == most || text.Len()+len(name) > b.Most {
			more = true
			return errEnough
		}
		found++
		if e.IsDir() {
			name += "/"
		}
		text.WriteString(strings.ToValidUTF8(name, "\uFFFD") + "\n")
		return nil
	}
	if err := w.all(); err != nil {
		return "", err
	}
	return foundText(text.String(), w.note(), found, more), nil
}

// foundText ends a list of what was found.
func foundText(text, note string, found int, more bool) string {
	switch {
	case more:
		note += fmt.Sprintf("[%d of more: narrow the pattern]\n", found)
	case found == 0:
		return note + "[none]"
	}
	return text + note
}

// globPattern makes a regular expression of a pattern: RE2 takes linear time, whatever the pattern.
func globPattern(glob string) (*regexp.Regexp, error) {
	if len(glob) > 1024 {
		return nil, invalid("pattern has more than 1024 bytes")
	}
	var re strings.Builder
	re.WriteString(`(?s)\A`)
	depth := 0
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch c := glob[i]; {
		case strings.HasPrefix(rest, "**/**/") && (i == 0 || glob[i-1] == '/'): // the same as once
			i += 3
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			re.WriteString(`(?:[^/]+/)*`)
			i += 3
		case strings.HasPrefix(rest, "**"):
			re.WriteString(`.*`)
			i += 2
		case c == '*':
			re.WriteString(`[^/]*`)
			i++
		case c == '?':
			re.WriteString(`[^/]`)
			i++
		case c == '[':
			end := strings.IndexByte(rest[min(2, len(rest)):], ']')
			if end < 0 {
				return nil, invalid("pattern: [ without ]")
			}
			set := rest[1 : 2+end]
			not := ""
			if set[0] == '!' || set[0] == '^' {
				set, not = set[1:], "^/"
			}
			re.WriteString("[" + not + setEscapes.Replace(set) + "]")
			i += end + 3
		case c == '{':
			depth++
			re.WriteString(`(?:`)
			i++
		case c == ',' && depth > 0:
			re.WriteString(`|`)
			i++
		case c == '}' && depth > 0:
			depth--
			re.WriteString(`)`)
			i++
		case c == '\\' && len(rest) > 1:
			re.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			re.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	if depth > 0 {
		return nil, invalid("pattern: { without }")
	}
	re.WriteString(`\z`)
	pattern, err := regexp.Compile(re.String())
	if err != nil {
		return nil, invalid("pattern: %w", err)
	}
	return pattern, nil
}

var setEscapes = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`, `~`, `\~`)
