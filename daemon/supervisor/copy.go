package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// copyIn unpacks the archive that the caller sends.
func (v *server) copyIn(c *rpc.Conn, request rpc.Message) {
	var p api.CopyParams
	if !decode(c, request, &p) {
		return
	}
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	from, to := io.Pipe()
	go func() {
		err := receive(c, to)
		// An archive that was cut off must be an error, and not look like a shorter one.
		to.CloseWithError(err)
		if err == nil {
			_ = receive(c, io.Discard) // the archive is whole; the caller may still leave
		}
		leave()
	}()
	err := v.live.CopyIn(ctx, string(p.Path), from)
	// An unpacking that failed reads no more; this ends the writes of what the caller still
	// sends.
	from.Close()
	_ = conclude(c, request, api.Nothing{}, err)
}

var errCut = errors.New("the caller left before the archive's end")

// receive writes the session's input until it ends.
func receive(c *rpc.Conn, to io.Writer) error {
	for {
		m, err := c.Receive()
		switch {
		case err != nil:
			return errCut
		case m.Method == api.NoteCloseInput:
			return nil
		case m.Method == api.NoteInput:
			var p api.SessionInput
			if err := json.Unmarshal(m.Params, &p); err != nil {
				return err
			}
			if _, err := to.Write(p.Data); err != nil {
				return err
			}
		}
	}
}

// copyOut sends a path as an archive.
func (v *server) copyOut(c *rpc.Conn, request rpc.Message) {
	var p api.CopyParams
	if !decode(c, request, &p) {
		return
	}
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	go func() {
		_ = receive(c, io.Discard) // a caller that leaves needs no more of it
		leave()
	}()
	to := bufio.NewWriterSize(noteWriter{c, api.StreamTar}, pipeRead)
	err := v.live.CopyOut(ctx, string(p.Path), to)
	// Also what came before a failure: a copy that left something out is whole otherwise.
	if ferr := to.Flush(); err == nil {
		err = ferr
	}
	_ = conclude(c, request, api.Nothing{}, err)
}
