package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds of a search.
const (
	maxLine     = 64 << 10 // bytes of a line that are searched
	shownLine   = 500      // bytes of a line that are shown
	maxSearched = 1 << 30  // bytes of all files
	sniffed     = 8 << 10  // bytes in which a NUL byte makes a file a binary one
)

// GrepArguments are those of grep.
type GrepArguments struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Matches    int    `json:"max_matches"` // 0: 1000
}

// search is one call of grep.
type search struct {
	box      *Box
	ctx      context.Context
	pattern  *regexp.Regexp
	text     strings.Builder
	found    int
	most     int
	searched int // bytes
	more     bool
	binary   int // files
	long     int // lines
	unread   int // files
}

// Grep finds lines that match a regular expression.
func (b *Box) Grep(ctx context.Context, a GrepArguments) (string, error) {
	expression := a.Pattern
	if a.IgnoreCase {
		expression = "(?i)" + expression
	}
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return "", invalid("pattern: %w", err)
	}
	root, err := b.dir(a.Path)
	if err != nil {
		return "", err
	}
	s := search{box: b, ctx: ctx, pattern: pattern, most: or(a.Matches, entries, maxEntries)}
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		if err := s.file(root, a.Path); err != nil && !errors.Is(err, errEnough) {
			return "", err
		}
		return s.result(""), nil
	}
	names := func(string) bool { return true }
	if a.Glob != "" {
		glob, err := globPattern(a.Glob)
		if err != nil {
			return "", err
		}
		names = func(name string) bool {
			return glob.MatchString(name) || !strings.Contains(a.Glob, "/") && glob.MatchString(filepath.Base(name))
		}
	}
	w := walk{ctx: ctx, root: root}
	w.visit = func(name string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !names(name) {
			return nil
		}
		err := s.file(filepath.Join(root, name), filepath.Join(a.Path, name))
		if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
			s.unread++
			return nil
		}
		return err
	}
	if err := w.all(); err != nil {
		return "", err
	}
	return s.result(w.note()), nil
}

// file searches one file, which is shown by a name.
func (s *search) file(path, name string) error {
	file, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, maxLine)
	if begin, _ := reader.Peek(sniffed); bytes.IndexByte(begin, 0) >= 0 { // a read error comes again
		s.binary++
		return nil
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	whole := true // the line before ended
	for number := 1; ; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		line, err := reader.ReadSlice('\n')
		if s.searched += len(line); s.searched > maxSearched {
			s.more = true
			return errEnough
		}
		if whole && len(line) > 0 && s.pattern.Match(bytes.TrimRight(line, "\r\n")) {
			if err := s.match(name, number, line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if whole {
				s.long++
			}
			whole = false
		case err == nil:
			whole, number = true, number+1
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

func (s *search) match(name string, number int, line []byte) error {
	line = bytes.TrimRight(line, "\r\n")
	text := strings.ToValidUTF8(string(line[:min(len(line), shownLine)]), "\uFFFD")
	if len(line) > shownLine {
		text += fmt.Sprintf(" [%d bytes of the line left out]", len(line)-shownLine)
	}
	if s.found == s.most || s.text.Len()+len(name)+len(text)+16 > s.box.Most {
		s.more = true
		return errEnough
	}
	s.found++
	fmt.Fprintf(&s.text, "%s:%d:%s\n", name, number, text)
	return nil
}

func (s *search) result(note string) string {
	if s.binary > 0 {
		note += fmt.Sprintf("[%d binary files were skipped]\n", s.binary)
	}
	if s.unread > 0 {
		note += fmt.Sprintf("[%d files could not be read]\n", s.unread)
	}
	if s.long > 0 {
		note += fmt.Sprintf("[of %d lines only the first %d bytes were searched]\n", s.long, maxLine)
	}
	return foundText(s.text.String(), note, s.found, s.more)
}
