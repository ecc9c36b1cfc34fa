package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// firstProcess is PID 1 of a container whose command is clove. It starts clove as its
// child, and does what a container's init has to do: every process that loses its
// parent becomes a child of PID 1, which must reap it. clove itself cannot, because it
// waits for its own children by their pids, and a wait for any child would take their
// statuses.
func firstProcess(args []string) int {
	// Before the child exists, so that no signal is lost in between.
	received := make(chan os.Signal, 32)
	signal.Notify(received)
	clove, err := startAgain(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "clove: cannot start as a child of PID 1: %v\n", err)
		return agent.ExitStartFailed
	}
	go passOn(received, clove)
	return reap(clove)
}

// startAgain makes the child the foreground process group of the terminal, if there is
// one: the keys that interrupt and stop then signal the child directly, and passOn does
// not send them a second time.
func startAgain(args []string) (pid int, err error) {
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	_, notTerminal := unix.IoctlGetTermios(unix.Stdin, unix.TCGETS)
	process, err := os.StartProcess(executable, args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// Foreground needs a terminal: without one, TIOCSPGRP would fail and with it
		// the start.
		Sys: &syscall.SysProcAttr{Foreground: notTerminal == nil, Ctty: unix.Stdin},
	})
	if err != nil {
		return 0, err
	}
	return process.Pid, nil
}

// own are the signals that are for PID 1 itself. SIGURG is Go's runtime preempting its
// own threads; SIGTTIN and SIGTTOU stop a background process group, which PID 1 has
// become.
var own = []os.Signal{unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU}

// passOn forwards everything else: the engine signals PID 1 and means clove.
func passOn(received <-chan os.Signal, pid int) {
	for s := range received {
		if number, ok := s.(syscall.Signal); ok && !slices.Contains(own, s) {
			unix.Kill(pid, number) // ESRCH: it has ended, and reap returns next
		}
	}
}

// reap waits for every child, and returns how clove ended. A stopped clove is continued
// at once: there is no shell that would do it.
func reap(clove int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR, err == nil && pid != clove:
		case err != nil:
			return agent.ExitStartFailed // ECHILD: cannot happen while clove runs
		case status.Stopped():
			unix.Kill(clove, unix.SIGCONT)
		case status.Signaled():
			return agent.ExitSignalBase + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
