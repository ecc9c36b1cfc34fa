package main

import (
	"time"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// sendWait bounds how long a supervisor that does not read can block PID 1. Its socket
// buffer has room for all messages that PID 1 sends in its life, so this is rare.
const sendWait = 5 * time.Second

// report sends messages to the supervisor. Send errors are ignored: receive detects the
// supervisor's end, and a later clove reads the exit file.
type report struct {
	conn *initproto.Conn
}

func (r *report) send(m initproto.Message) {
	_ = r.conn.SendWithin(sendWait, m)
}

// last writes the exit file before it sends the message, so the receiver of the message
// finds the file complete.
func (r *report) last(m initproto.Message) {
	if data, err := initproto.Encode(m); err == nil {
		// One short write to a regular file: it is not split, so no partial line is possible.
		_, _ = unix.Write(initproto.ExitFD, append(data, '\n'))
	}
	r.send(m)
}
