package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bounds of files.
const (
	readLines = 2000
	maxEdit   = 8 << 20 // bytes of a file that is edited
	maxNames  = 1000    // of a folder that are listed
)

type readArguments struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// readFile holds no more of the file than the result.
func (b *Box) readFile(ctx context.Context, a readArguments) (string, error) {
	file, err := b.open(a.Path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	first, limit := max(a.Offset, 1), a.Limit
	if limit <= 0 {
		limit = readLines
	}
	var text []byte
	reader, line, start := bufio.NewReader(file), 1, 0 // of the line, in text
	for ctx.Err() == nil {
		piece, err := reader.ReadSlice('\n')
		if line >= first && len(piece) > 0 {
			if line-first >= limit || len(text)+len(piece) > MaxResult {
				return rest(append(text, piece...), start, line), nil
			}
			text = append(text, piece...)
		}
		switch {
		case err == nil:
			line, start = line+1, len(text)
		case errors.Is(err, io.EOF) && len(text) == 0 && first > 1:
			return "", fmt.Errorf("the file ends before line %d", first)
		case errors.Is(err, io.EOF):
			return strings.ToValidUTF8(string(text), "\uFFFD"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
	return "", ctx.Err()
}

// rest ends a text that is not whole before its last line, which begins at start. A line that
// alone is too long is shown in part.
func rest(text []byte, start, line int) string {
	note := fmt.Sprintf("[the file goes on: read it with offset %d]", line)
	if start == 0 {
		start = min(len(text), MaxResult)
		note = fmt.Sprintf("\n[line %d is longer than a result may be: use exec to read a part of it]", line)
	}
	return strings.ToValidUTF8(string(text[:start]), "\uFFFD") + note
}

// open opens a regular file.
func (b *Box) open(given string, flags int) (*os.File, error) {
	path, err := b.path(given)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

type writeArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (b *Box) writeFile(_ context.Context, a writeArguments) (string, error) {
	if path, err := b.path(a.Path); err == nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return "", err
		}
	}
	if err := b.write(a.Path, a.Content); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes", len(a.Content)), nil
}

// write replaces what the file has, and keeps its mode. It is not cut before it is known to be a
// regular one.
func (b *Box) write(path, content string) error {
	file, err := b.open(path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteString(content)
	}
	return errors.Join(err, file.Close())
}

type editArguments struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

func (b *Box) edit(_ context.Context, a editArguments) (string, error) {
	file, err := b.open(a.Path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxEdit+1))
	if err != nil {
		return "", err
	}
	text, count := string(content), 0
	if a.Old != "" {
		count = strings.Count(text, a.Old)
	}
	switch {
	case len(content) > maxEdit:
		return "", fmt.Errorf("the file has more than %d bytes: use exec", maxEdit)
	case a.Old == "":
		return "", errors.New("old is empty")
	case count == 0:
		return "", errors.New("old is not in the file: read it again")
	case count > 1 && !a.All:
		return "", fmt.Errorf("old is in the file %d times: give more of what is around it, or all", count)
	case len(text)+count*(len(a.New)-len(a.Old)) > maxEdit:
		return "", fmt.Errorf("the file would have more than %d bytes", maxEdit)
	}
	if err := b.write(a.Path, strings.ReplaceAll(text, a.Old, a.New)); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d", count), nil
}

type listArguments struct {
	Path string `json:"path"`
}

func (b *Box) list(ctx context.Context, a listArguments) (string, error) {
	path := b.Dir
	if a.Path != "" {
		path, _ = b.path(a.Path) // not empty
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	more := len(entries) > maxNames
	entries = entries[:min(len(entries), maxNames)]
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&text, entryLine(e))
	}
	switch {
	case more:
		fmt.Fprintf(&text, "[%d of more: use exec to see others]\n", maxNames)
	case len(entries) == 0:
		return "[empty]", nil
	}
	return cut(text.String()), ctx.Err()
}

func entryLine(e fs.DirEntry) string {
	info, err := e.Info()
	switch {
	case err != nil:
		return e.Name()
	case e.IsDir():
		return e.Name() + "/"
	case info.Mode().IsRegular():
		return fmt.Sprintf("%s %d", e.Name(), info.Size())
	}
	return e.Name() + " " + info.Mode().Type().String()
}
