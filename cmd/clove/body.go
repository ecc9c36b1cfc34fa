package main

import (
	"encoding/json"
	"io"
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// body is where a call has its body: the value, or the digest of a blob of an owner's.
type body struct {
	owner *uint32
	value *json.RawMessage
	blob  *string
}

// fromFile is a call whose body may be a file: JSON of at most 48 KiB is sent in the call, and anything else is
// uploaded as a blob first.
func fromFile[P, R any](a *call[P, R], usage string, of func(*P) body) *call[P, R] {
	do := a.ask
	a.fill = func(l *line, _ *P) error {
		if l.Context.IsSet(flagFile) == (len(l.args) > 1) {
			return invalid("", usage, "it takes a text or a file, and not both")
		}
		return nil
	}
	a.ask = func(s *screen, l *line, d *client.Client, params P) (none R, err error) {
		if l.Context.IsSet(flagFile) {
			if err := of(&params).read(l, d, l.Context.String(flagFile)); err != nil {
				return none, err
			}
		}
		return do(s, l, d, params)
	}
	return a
}

// read reads a file.
func (b body) read(l *line, d *client.Client, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return unreadable(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return unreadable(name, err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > api.BlobMost {
		return invalid(flagFile, "name a regular file of 1 byte to 64 MiB", "%s cannot be a body", name)
	}
	if info.Size() <= api.BodyMost {
		text, err := io.ReadAll(io.LimitReader(file, api.BodyMost))
		if err != nil {
			return unreadable(name, err)
		}
		if json.Valid(text) {
			*b.value = text
			return nil
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return unreadable(name, err)
		}
	}
	made, err := client.PutBlob(l.Context.Context, d, b.owner, file, info.Size())
	*b.blob = made.SHA256
	return err
}

func unreadable(name string, err error) error {
	return &agent.Error{Kind: agent.KindOf(err), Message: "cannot read " + name, Err: err, Hint: "name a file that you can read"}
}

// readBlob writes a blob to the output as it is.
func readBlob(s *screen, l *line, d *client.Client, p api.BlobFetchParams) (none api.Nothing, err error) {
	return none, s.content(l, d, p.Owner, p.Blob)
}

// content writes a blob to the output, which is no terminal: it may be anything.
func (s *screen) content(l *line, d *client.Client, owner *uint32, digest string) error {
	if isTerminal(s.out) {
		return invalid("", "write it to a file: > FILE", "a blob is nothing for a terminal")
	}
	return client.GetBlob(l.Context.Context, d, owner, digest, s.out)
}

// blobCall is a call that writes a blob to the output.
func blobCall() *call[api.BlobFetchParams, api.Nothing] {
	return &call[api.BlobFetchParams, api.Nothing]{ask: readBlob, show: nothing[api.Nothing]}
}

// getKey reads a key, and writes the blob that it refers to, unless JSON is wanted.
func getKey() *call[api.StateReadParams, api.StateResult] {
	a := ask(methods.StateRead)
	a.ask = func(s *screen, l *line, d *client.Client, p api.StateReadParams) (api.StateResult, error) {
		has, err := client.Do(l.Context.Context, d, methods.StateRead, p)
		if err == nil && has.Blob != nil && !l.Context.Bool(flagJSON) {
			err = s.content(l, d, p.Owner, has.Blob.SHA256)
		}
		return has, err
	}
	return a.shows(showState)
}
