package runtime

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/tools"
	"clove.run/clove/tools/inside"
)

// Tools serves the MCP server of a run's agent. Either cloved does, or, where none runs, the process
// that supervises a run in the foreground.
type Tools interface {
	// ServeTools serves the run's agent on a listener, which it takes over, until ctx ends.
	ServeTools(ctx context.Context, run agent.Run, listener *os.File) error
}

// toolProgram is clove-tool, which is installed beside clove-init.
const toolProgram = "clove-tool"

// toolsStart is the part of a launch about tools.
type toolsStart struct{ *launch }

// open makes the listener of the MCP server before the agent could take its port, and the socket over
// which programs of tools come into the sandbox.
func (l toolsStart) open() error {
	if !l.spec.Kernel.HasTools() {
		return nil
	}
	if l.streams.Tools == nil || l.network.namespace == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "tools", Message: "nothing here serves tools",
			Hint: "start the run with `clove run`, and without --network host"}
	}
	programs, err := inside.Listen(l.dir.path)
	if err != nil {
		return err
	}
	l.programs = programs
	l.undo.Add("programs of tools", func() error { programs.Close(); return nil })
	listener, err := l.network.namespace.ListenInside(agent.ToolPort)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.undo.Add("tools", func() error { cancel(); return nil })
	return l.streams.Tools.ServeTools(ctx, l.run, listener)
}

// serveTools runs programs of tools in a live sandbox until the listener closes: at the run's end.
func serveTools(l *net.UnixListener, live *Live) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-live.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	inside.Serve(ctx, l, func(ctx context.Context, e agent.Exec, stdin, stdout, stderr *os.File) (int, error) {
		return live.Exec(ctx, e, IO{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	})
}

// toolMount shows clove-tool in the sandbox of a run that may call tools.
func toolMount(spec agent.Spec) (binds []rootfs.Bind, execute []string) {
	if !spec.Kernel.HasTools() {
		return nil, nil
	}
	programs, err := Programs()
	if err != nil {
		return nil, nil // the launch has looked for them already
	}
	return []rootfs.Bind{{Source: filepath.Join(programs, toolProgram), Target: tools.Program, ReadOnly: true}}, []string{tools.Program}
}
