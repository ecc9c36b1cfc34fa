package main

import (
	"time"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// sendWait bounds how long a supervisor that does not read can hold PID 1. Its
// socket buffer takes every message that PID 1 sends in a life.
const sendWait = 5 * time.Second

// report tells the supervisor. Nothing is to be done where it does not
// listen: the lifeline tells whether it lives, the exit file is for who comes after.
type report struct {
	conn *initproto.Conn
}

func (r *report) send(m initproto.Message) {
	_ = r.conn.SetSendDeadline(time.Now().Add(sendWait))
	_ = r.conn.Send(m)
}

// last writes the exit file, then the message: who gets the message finds the
// file complete.
func (r *report) last(m initproto.Message) {
	if data, err := initproto.Encode(m); err == nil {
		// One write of a line this short to a regular file is whole or nothing.
		_, _ = unix.Write(initproto.ExitFD, append(data, '\n'))
	}
	r.send(m)
}
