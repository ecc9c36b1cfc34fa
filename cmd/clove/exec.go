package main

import (
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies/settings"
)

const (
	execName     = "exec"
	flagKillRest = "kill-rest"
)

func execCommand() command {
	return command{
		task: "run", runs: completeLive, usage: "run one more process in a live run's sandbox",
		verbs: []verb{{line: "clove exec [-itd] [-e KEY=VALUE] [-w DIR] [-u USER] [--timeout TIME] [--kill-rest] NAME|ID -- COMMAND [ARGS...]", act: of(sessions.exec), free: true}},
		description: "It has the same isolation and limits as the agent. When this command ends first, by TERM too, or the time is over, it gets TERM,\n" +
			"the run's --stop-timeout, and KILL with all that it started. What it leaves running when it ends by itself goes on.\n" +
			"Exit status: the process's own; 124 the time was over, 125 it could not be started, 126 not executable, 127 not found.",
		flags: []cli.Flag{
			boolean("", flagInteractive, "i", "pass stdin on"),
			boolean("", flagTTY, "t", "give it a terminal"),
			values("", flagEnv, "e", "set KEY=VALUE, on top of the agent's", ""),
			value("", flagWorkdir, "w", "working directory inside", "the agent's"),
			value("", flagUser, "u", "NAME|UID[:GID] inside; root only if the agent is", "the agent's"),
			boolean("", settings.Detach, "d", "leave it running: without input, terminal and output; the exit status is 0 when it executes"),
			value("", settings.Timeout, "", "end it, and all that it started, after this time", "no limit"),
			boolean("", flagKillRest, "", "when it ends, end all that it started"),
			boolean("", flagClipboard, "", clipboardUsage),
		},
	}
}

// exec makes the caller's terminal raw only if the process has a terminal and reads it.
// Otherwise ctrl-c ends this command, and with it the process.
func (p sessions) exec(c *cli.Context) error {
	if c.NArg() < 2 {
		return invalid("", "clove exec NAME -- COMMAND", "it takes a run and a command")
	}
	params := api.ExecParams{RunParams: api.RunParams{Run: c.Args().First()}, Stdin: c.Bool(flagInteractive), Detach: c.Bool(settings.Detach),
		Exec: agent.Exec{Command: c.Args().Tail(), Env: c.StringSlice(flagEnv), Dir: c.String(flagWorkdir), Terminal: c.Bool(flagTTY), KillRest: c.Bool(flagKillRest)}}
	if params.Detach && (params.Stdin || params.Exec.Terminal) {
		return invalid(settings.Detach, "omit -i and -t, or -d", "a process without this command has neither input nor a terminal")
	}
	if text := c.String(settings.Timeout); text != "" {
		limit, err := settings.ParseClock(settings.Timeout, text)
		if err != nil {
			return err
		}
		params.Exec.Timeout = limit
	}
	if text := c.String(flagUser); text != "" {
		user, err := settings.ParseUser(text, "/")
		if err != nil {
			return err
		}
		params.Exec.User = &user
		// The agent's HOME belongs to the agent's user. A value that was given
		// explicitly stays.
		if !slices.ContainsFunc(params.Exec.Env, func(v string) bool { return strings.HasPrefix(v, "HOME=") }) {
			params.Exec.Env = append(params.Exec.Env, "HOME="+user.Home)
		}
	}
	p.displayFor(c)
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	// Before the session begins, so that nothing is typed while the caller's terminal
	// still edits lines.
	t, err := p.changeTerminal(params.Exec.Terminal && params.Stdin, nil)
	if err != nil {
		return err
	}
	defer t.restore()
	if t.changed {
		go t.restoreWhenKilled(unix.SIGHUP, unix.SIGINT)
	}
	params.Size = t.size()
	session, err := client.Open(c.Context, d, methods.RunExec, params)
	if err != nil {
		return err
	}
	defer t.follow(session)()
	defer passTerm(session, t, params.Stdin)()
	err = executed(p.screen, c, session, t, params.Stdin)
	if err != nil && attaches(params.Exec.Command) && !p.json {
		fmt.Fprintln(p.err, "hint: a session traces only processes that it started; start the program below the debugger, here or as the agent (docs/seccomp.md)")
	}
	return err
}

// debuggers attach to the process that -p or --pid names.
var debuggers = []string{"gdb", "lldb", "ltrace", "py-spy", "strace"}

// attaches reports whether a command is a debugger that attaches to a process. As a session's
// first process it can only name one of another session, or the agent's.
func attaches(command []string) bool {
	return slices.Contains(debuggers, path.Base(command[0])) && slices.ContainsFunc(command[1:], func(arg string) bool {
		return strings.HasPrefix(arg, "-p") || strings.HasPrefix(arg, "--pid")
	})
}

// passTerm passes a TERM on, and leaves it to the process to end. Further ones are ignored:
// timeout(1) sends two. The signal may wait behind input that the process does not read; then
// this command ends by it, and the session with that.
func passTerm(session *client.Session, t *userTerminal, stdin bool) (stop func()) {
	received, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(received, unix.SIGTERM)
	go func() {
		select {
		case <-received:
		case <-over:
			return
		}
		sent := make(chan struct{})
		go func() { _ = session.Signal(unix.SIGTERM); close(sent) }()
		var late <-chan time.Time
		if stdin {
			late = time.After(askTime)
		}
		select {
		case <-sent:
		case <-time.After(time.Second):
			t.dieBy(unix.SIGTERM)
		case <-over:
		}
		select {
		case <-late:
			t.dieBy(unix.SIGTERM)
		case <-over:
		}
	}()
	return func() { signal.Stop(received); close(over) }
}

// executed stays with the session to its end.
func executed(s *screen, c *cli.Context, session *client.Session, t *userTerminal, stdin bool) error {
	if stdin {
		go s.feed(session, nil, func() { _ = session.CloseInput() }) // it may be over
	}
	var result api.ExecResult
	err := session.Answer(c.Context, &result, s.showOrLose)
	t.restore() // before anything is printed on it
	if err != nil {
		return err
	}
	if result.Failure != nil {
		s.reportFailure(*result.Failure)
	}
	if result.ExitCode != 0 {
		return exitStatus(result.ExitCode)
	}
	return nil
}
