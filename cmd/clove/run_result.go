package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
)

// resultFile is where --result wants the record. The empty path wants none.
type resultFile string

// newResultFile refuses, before the run, a place that cannot be written to.
func newResultFile(h host, path string) (resultFile, error) {
	if path == "" {
		return "", nil
	}
	absolute := h.absolute(path)
	if info, err := os.Stat(absolute); err == nil && !info.Mode().IsRegular() {
		return "", resultError(path, fmt.Errorf("it is not a regular file"))
	}
	if info, err := os.Stat(filepath.Dir(absolute)); err != nil {
		return "", resultError(path, err)
	} else if !info.IsDir() {
		return "", resultError(path, fmt.Errorf("%s is not a directory", filepath.Dir(absolute)))
	}
	return resultFile(absolute), nil
}

// write replaces the file as a whole: a reader sees the old record or the new
// one, never half of it.
func (f resultFile) write(record agent.Record) error {
	if f == "" {
		return nil
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return resultError(string(f), err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(string(f)), "."+filepath.Base(string(f))+".*")
	if err != nil {
		return resultError(string(f), err)
	}
	defer os.Remove(temporary.Name()) // gone already when the rename succeeded
	if err := fill(temporary, append(text, '\n')); err != nil {
		return resultError(string(f), err)
	}
	if err := os.Rename(temporary.Name(), string(f)); err != nil {
		return resultError(string(f), err)
	}
	return nil
}

// fill writes and closes a file that others may read, as if the user had
// redirected output to it.
func fill(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if merr := f.Chmod(0o644); err == nil {
		err = merr
	}
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// resultError names the path as it was written on the command line, or in full
// when the run is over and the caller may have moved.
func resultError(path string, err error) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagResult, Message: "cannot write the record to " + path,
		Hint: "name a file in a directory that exists", Err: err}
}
