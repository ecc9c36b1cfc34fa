package main

import (
	"errors"
	"io/fs"
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

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
