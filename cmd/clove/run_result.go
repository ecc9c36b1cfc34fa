package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/policies/host"
)

// resultFile is the path of --result; empty if it was not given.
type resultFile string

// newResultFile refuses a path that cannot be written to before the run: after it, the
// record would be lost.
func newResultFile(h host.Host, path string) (resultFile, error) {
	if path == "" {
		return "", nil
	}
	absolute := h.Absolute(path)
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

// write replaces the file as a whole, so that a reader sees the old record or the new
// one, never a part.
func (f resultFile) write(record agent.Record) error {
	if f == "" {
		return nil
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return resultError(string(f), err)
	}
	err = atomicfile.Replace(string(f), 0o600, func(file *os.File) error {
		_, err := file.Write(append(text, '\n'))
		return errors.Join(err, file.Chmod(0o644)) // others may read it, like a file that a shell redirects to
	})
	if err != nil {
		return resultError(string(f), err)
	}
	return nil
}

// resultError names the path as it was written on the command line, or in full once the
// run is over.
func resultError(path string, err error) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagResult, Message: "cannot write the record to " + path,
		Hint: "name a file in a directory that exists", Err: err}
}
