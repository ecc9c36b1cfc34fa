package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

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
	hint := "name a file in a directory that exists"
	if errors.Is(err, unix.ENOSPC) {
		hint = "its disk is full; clove inspect shows the record"
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagResult, Message: "cannot write the record to " + path, Hint: hint, Err: err}
}

// idFile is the path of --cidfile; empty if it was not given.
type idFile string

// newIDFile writes the ID before anything is started, so that a path that cannot be
// written refuses the run. It never overwrites the ID of another run.
func newIDFile(h host.Host, path string, id agent.ID) (idFile, error) {
	if path == "" {
		return "", nil
	}
	path = h.Absolute(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	hint := "name a file in a directory that exists"
	if errors.Is(err, fs.ErrExist) {
		hint = "remove it if that run is over, or name another file"
	}
	if err == nil {
		_, err = file.WriteString(string(id))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return "", &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagIDFile, Message: "cannot write the ID", Hint: hint, Err: err}
	}
	return idFile(path), nil
}

// keptUnless removes the file if err says that there is no such run, and returns err.
func (f idFile) keptUnless(err error) error {
	if err != nil && f != "" {
		_ = os.Remove(string(f)) // err is the one to report
	}
	return err
}
