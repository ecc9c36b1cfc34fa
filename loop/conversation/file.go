package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"clove.run/clove/loop/model"
)

// maxFile is what a conversation may have in bytes. Large is reached long before.
const (
	maxFile = 64 << 20
	large   = 16 << 20
)

// ErrInUse is a conversation that another process goes on with.
var ErrInUse = errors.New("another process uses the conversation")

// File is an open conversation. It is for one goroutine.
type File struct {
	path    string
	file    *os.File // at its end
	size    int64
	records []Record
	tools   int // tokens that each call has beside the messages
}

// Open reads a conversation, or begins one, also its directory. tools is the estimated size of
// what each call has beside the messages. dropped is the size of a last line that was not wholly
// written, and that is gone.
func Open(path string, tools int) (f *File, dropped int, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, err
	}
	file, err := lock(path)
	if err != nil {
		return nil, 0, err
	}
	f = &File{path: path, file: file, tools: tools}
	if dropped, err = f.read(); err != nil {
		file.Close()
		return nil, 0, err
	}
	return f, dropped, nil
}

// lock opens the file that has the path, a regular one, and locks it.
func lock(path string) (*os.File, error) {
	// Not blocking: a FIFO would wait for a writer.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil && syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		err = ErrInUse
	}
	// Another process may have put a new file in its place.
	if now, statErr := os.Lstat(path); err == nil && (statErr != nil || !os.SameFile(info, now)) {
		err = ErrInUse
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, syncDir(path)
}

func (f *File) read() (dropped int, err error) {
	text, err := io.ReadAll(io.LimitReader(f.file, maxFile+1))
	if err != nil {
		return 0, err
	}
	if len(text) > maxFile {
		return 0, fmt.Errorf("%s has more than %d bytes: move it away to begin anew", f.path, maxFile)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	dropped = len(text) - whole
	if dropped > 0 {
		if err := f.file.Truncate(int64(whole)); err != nil {
			return 0, err
		}
	}
	f.size = int64(whole)
	if _, err := f.file.Seek(f.size, io.SeekStart); err != nil {
		return 0, err
	}
	number := 0
	for line := range bytes.SplitAfterSeq(text[:whole], []byte("\n")) {
		if number++; len(line) == 0 {
			continue
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return 0, fmt.Errorf("%s:%d is no message: %w", f.path, number, err)
		}
		f.records = append(f.records, r)
	}
	return dropped, nil
}

// Append writes a record and syncs it. After an error the file is as before, or cannot be used.
func (f *File) Append(r Record) error {
	line, err := encode(&r)
	if err != nil {
		return err
	}
	if f.size+int64(len(line)) > maxFile {
		return fmt.Errorf("%s would have more than %d bytes", f.path, maxFile)
	}
	if _, err = f.file.Write(line); err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		// A part of a line would spoil the next one.
		_ = f.file.Truncate(f.size)
		_, _ = f.file.Seek(f.size, io.SeekStart)
		return fmt.Errorf("cannot keep the conversation: %w", err)
	}
	f.size += int64(len(line))
	f.records = append(f.records, r)
	return nil
}

func encode(r *Record) ([]byte, error) {
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	r.Content = strings.ToValidUTF8(r.Content, "\uFFFD")
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// Full reports whether the conversation has more than so many tokens, or is a large file.
func (f *File) Full(tokens int) bool { return f.Tokens() > tokens || f.size > large }

// Replace puts a summary in the place of everything but the instructions, and returns the name
// of the file in which all of it stays.
func (f *File) Replace(summary func(kept string) Record) (kept string, err error) {
	if kept, err = f.keep(); err != nil {
		return "", fmt.Errorf("cannot keep the conversation: %w", err)
	}
	records := []Record{{Message: model.Message{Role: model.RoleSystem, Content: f.Instructions()}}, summary(kept)}
	next := f.path + ".new"
	_ = os.Remove(next) // of a process that was killed here
	file, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	after := &File{path: f.path, file: file, tools: f.tools}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for _, r := range records {
		if err == nil {
			err = after.Append(r)
		}
	}
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		file.Close()
		_ = os.Remove(next)
		return "", err
	}
	f.file.Close()
	*f = *after
	return kept, syncDir(f.path)
}

// maxKept bounds the search for a free name.
const maxKept = 10_000

// keep gives the file a second name, which stays.
func (f *File) keep() (name string, err error) {
	ending := filepath.Ext(f.path)
	for n := 1; n <= maxKept; n++ {
		at := strings.TrimSuffix(f.path, ending) + "." + strconv.Itoa(n) + ending
		if err = os.Link(f.path, at); err == nil {
			return filepath.Base(at), syncDir(at)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", err
}

// Close ends the use of the file.
func (f *File) Close() error { return f.file.Close() }

func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
