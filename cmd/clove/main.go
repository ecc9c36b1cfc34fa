package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"clove.run/clove/client"
	"clove.run/clove/policies/host"
	"clove.run/clove/runtime"
)

// Inside the new namespaces this binary is started again and must become the
// sandbox's init before anything else runs.
func init() {
	if len(os.Args) > 1 && os.Args[1] == runtime.ReexecArgument {
		runtime.Reexec()
	}
}

func main() {
	if os.Getpid() == 1 {
		os.Exit(firstProcess(os.Args))
	}
	p := program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		host:    host.Current,
		open:    openRuntime,
		dial:    client.Dial,
		doctor:  runtime.Doctor,
		systemd: systemd{units: "/etc/systemd/system", booted: "/run/systemd/system"},
		ending:  exitOnSignal,
	}
	// Not here: the main goroutine has the first thread to itself (internal/nsthread),
	// so that each time it waits costs a hand-over between threads.
	status := make(chan int)
	go func() { status <- p.execute(os.Args[1:]) }()
	os.Exit(<-status)
}

// exitOnSignal has signals that come after the agent's end hurry this program's
// own, which may hang on a reader, and change nothing else of it.
func exitOnSignal(status int) {
	late := make(chan os.Signal, 1)
	signal.Notify(late, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	go func() { <-late; os.Exit(status) }()
}
