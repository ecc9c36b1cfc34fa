package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"clove.run/clove/client"
	"clove.run/clove/internal/callout"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/probe"
	"clove.run/clove/policies/probe/reach"
	"clove.run/clove/runtime"
)

// libcontainer starts this binary again inside the new namespaces, where it must become
// the sandbox's init before anything else runs.
func init() {
	if len(os.Args) > 1 && os.Args[1] == runtime.ReexecArgument {
		runtime.Reexec()
	}
	if len(os.Args) > 1 && os.Args[1] == callout.Argument {
		callout.Main(os.Args[2:])
	}
	// As an agent: clove's own flags, files and terminals are not for a sandbox.
	if len(os.Args) > 1 && os.Args[1] == probe.Argument {
		probe.Main(os.Args[2:], reach.Try)
	}
}

func main() {
	// PID 1 is clove itself only as the command of a container.
	if os.Getpid() == 1 {
		os.Exit(firstProcess(os.Args))
	}
	p := program{&screen{in: os.Stdin, out: os.Stdout, err: os.Stderr, lost: &losses{}}, &access{
		host:    host.Current,
		open:    openRuntime,
		dial:    client.Dial,
		doctor:  runtime.Doctor,
		own:     os.Executable,
		systemd: systemd{units: "/etc/systemd/system", booted: "/run/systemd/system"},
		ending:  exitOnSignal,
	}}
	// Not on the main goroutine: it has the first thread to itself (internal/nsthread),
	// so each of its waits costs a switch between threads.
	status := make(chan int)
	go func() { status <- p.execute(os.Args[1:]) }()
	os.Exit(<-status)
}

// exitOnSignal lets a signal that comes after the agent's end end this program at once,
// with the same status: the reader of its output may block it.
func exitOnSignal(status int) {
	late := make(chan os.Signal, 1)
	signal.Notify(late, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	go func() { <-late; os.Exit(status) }()
}
