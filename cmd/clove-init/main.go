package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"clove.run/clove/internal/initproto"
)

// gcPercent keeps the heap of a process that sits beside every agent small: the
// first collection comes at 4 MiB times this percentage.
const gcPercent = 10

// init keeps main on the first thread: the process's name and its parent-death
// signal are that thread's own, and a goroutine may change threads at any call.
func init() { runtime.LockOSThread() }

func main() {
	if os.Args[0] == secondStageName {
		exit(secondStage())
	}
	if len(os.Args) == 2 && os.Args[1] == initproto.EnterArgument {
		exit(enter())
	}
	if os.Getpid() != 1 {
		exit(errors.New("started by clove in a sandbox, not by people"))
	}
	nameProcess()
	runtime.GOMAXPROCS(1) // one thing at a time is enough; fewer threads of the agent's pids limit
	debug.SetGCPercent(gcPercent)
	if err := firstStage(); err != nil {
		exit(err)
	}
}

// exit ends a stage that could not do its work, and says why where nobody else could.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clove-init:", err)
	}
	os.Exit(initproto.ExitStartFailed)
}

// firstStage is PID 1's whole life. An error means that there was nobody to
// tell; failures of the agent's start go to the supervisor.
func firstStage() error {
	if err := harden(); err != nil {
		return err
	}
	conn, err := initproto.NewConn(initproto.ControlFD)
	if err != nil {
		return err
	}
	if err := forgetParent(); err != nil {
		return err
	}
	runtime.UnlockOSThread() // the rest of its life needs no thread of its own
	report := &report{conn: conn}
	agent, err := fork()
	if err != nil {
		report.last(initproto.Message{ExecFailed: startFailed("fork", err)})
		return nil
	}
	first, err := conn.Receive()
	if err != nil {
		return err // nobody is there; the second stage dies with PID 1
	}
	if first.Orders == nil {
		return errors.New("cannot start: the first message brought no orders")
	}
	box, failure := newSandbox(conn, agent, first.Orders)
	if failure != nil {
		report.last(initproto.Message{ExecFailed: failure})
		return nil
	}
	first = initproto.Message{} // megabytes of environment, perhaps: let them go
	report.last(box.run(report))
	return nil
}
