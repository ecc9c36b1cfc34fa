package builtin

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
	readLines  = 2000
	maxRead    = 4 << 20 // bytes that a result has of a file
	maxWrite   = 4 << 20
	maxEdit    = 8 << 20 // bytes of a file that is edited
	entries    = 1000    // of a folder, unless a call says otherwise
	maxEntries = 10_000
)

// ReadArguments are those of read.
type ReadArguments struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // the first line, from 1
	Limit  int    `json:"limit"`  // lines
}

// Read returns lines of a file. It holds no more of the file than the result.
func (b *Box) Read(ctx context.Context, a ReadArguments) (string, error) {
	file, err := b.open(a.Path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	first, limit, most := max(a.Offset, 1), a.Limit, min(b.Most, maxRead)
	if limit <= 0 {
		limit = readLines
	}
	var text []byte
	reader, line, start := bufio.NewReader(file), 1, 0 // of the line, in text
	for ctx.Err() == nil {
		piece, err := reader.ReadSlice('\n')
		if line >= first && len(piece) > 0 {
			if line-first >= limit || len(text)+len(piece) > most {
				return rest(append(text, piece...), start, line, most), nil
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
func rest(text []byte, start, line, most int) string {
	note := fmt.Sprintf("[the file goes on: read it with offset %d]", line)
	if start == 0 {
		start = min(len(text), most)
		note = fmt.Sprintf("\n[line %d is longer than a result may be: read a part of it with a program, as cut or head]", line)
	}
	return strings.ToValidUTF8(string(text[:start]), "\uFFFD") + note
}

// open opens a regular file.
func (b *Box) open(given string, flags int) (*os.File, error) {
	path, err := b.path(given)
	if err != nil {
		return nil, err
	}
	return openRegular(path, flags)
}

// openRegular does not wait for the other end of a FIFO.
func openRegular(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0o666)
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

// WriteArguments are those of write.
type WriteArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Write makes a file with its folders, or replaces what it has.
func (b *Box) Write(_ context.Context, a WriteArguments) (string, error) {
	if len(a.Content) > maxWrite {
		return "", invalid("content has more than %d bytes", maxWrite)
	}
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

// EditArguments are those of edit.
type EditArguments struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

// Edit replaces a text in a file.
func (b *Box) Edit(_ context.Context, a EditArguments) (string, error) {
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
		return "", fmt.Errorf("the file has more than %d bytes: edit it with a program, as sed", maxEdit)
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

// ListArguments are those of list.
type ListArguments struct {
	Path    string `json:"path"`
	Entries int    `json:"max_entries"` // 0: 1000
	Hidden  bool   `json:"include_hidden"`
}

// List names what a folder has.
func (b *Box) List(ctx context.Context, a ListArguments) (string, error) {
	path, err := b.dir(a.Path)
	if err != nil {
		return "", err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	most := or(a.Entries, entries, maxEntries)
	var found []fs.DirEntry
	hidden := 0
	for len(found) <= most && ctx.Err() == nil {
		some, err := dir.ReadDir(1024)
		for _, e := range some {
			if !a.Hidden && strings.HasPrefix(e.Name(), ".") {
				hidden++
				continue
			}
			found = append(found, e)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	more := len(found) > most
	found = found[:min(len(found), most)]
	slices.SortFunc(found, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	var text strings.Builder
	for _, e := range found {
		fmt.Fprintln(&text, entryLine(e))
	}
	listed := b.cut(text.String())
	switch {
	case more:
		listed += fmt.Sprintf("[%d of more: find others by a pattern or with a program]\n", most)
	case len(found) == 0 && hidden == 0:
		return "[empty]", nil
	case hidden > 0:
		listed += fmt.Sprintf("[%d names with a dot at their beginning are left out: see them with include_hidden]\n", hidden)
	}
	return listed, ctx.Err()
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
