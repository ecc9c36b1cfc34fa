package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"clove.run/clove/internal/initproto"
)

// gcPercent keeps the heap small, because one such process runs for every agent: the first
// collection comes at 4 MiB times this percentage.
const gcPercent = 10

// init keeps main on the first thread. The process's name and its parent-death signal
// belong to that thread, and a goroutine may otherwise change threads at any call.
func init() { runtime.LockOSThread() }

func main() {
	if os.Args[0] == secondStageName {
		exit(secondStage())
	}
	if len(os.Args) == 2 && os.Args[1] == initproto.EnterArgument {
		exit(enter())
	}
	if os.Getpid() != 1 {
		exit(errors.New("this program is started by clove in a sandbox only"))
	}
	nameProcess()
	runtime.GOMAXPROCS(1) // it does one thing at a time, and its threads count towards the agent's pids limit
	debug.SetGCPercent(gcPercent)
	if err := firstStage(); err != nil {
		exit(err)
	}
}

// exit ends a stage that failed. stderr is for errors that could not be sent to the supervisor.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clove-init:", err)
	}
	os.Exit(initproto.ExitStartFailed)
}

// firstStage is the whole life of PID 1. It returns an error only if there is no supervisor
// to send it to. Failures of the agent's start are sent to the supervisor.
func firstStage() error {
	if err := harden(); err != nil {
		return err
	}
	conn, err := initproto.NewConn(initproto.ControlFD)
	if err != nil {
		return err
	}
	if err := clearParentDeath(); err != nil {
		return err
	}
	runtime.UnlockOSThread() // nothing below depends on the thread
	report := &report{conn: conn}
	agent, err := fork()
	if err != nil {
		report.last(initproto.Message{ExecFailed: startFailed("fork", err)})
		return nil
	}
	first, err := conn.Receive()
	if err != nil {
		return err // the supervisor is gone; the second stage dies with PID 1
	}
	if first.Orders == nil {
		return errors.New("cannot start: the first message brought no orders")
	}
	agent.forward = report.send
	box, failure := newSandbox(conn, agent, first.Orders)
	if failure != nil {
		report.last(initproto.Message{ExecFailed: failure})
		return nil
	}
	first = initproto.Message{} // the environment may have megabytes: let the collector free it
	report.last(box.run(report))
	return nil
}
