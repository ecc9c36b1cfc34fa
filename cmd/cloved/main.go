package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/daemon"
	"clove.run/clove/runtime"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.0.0-dev"

func main() {
	o, err := readOptions(os.Args[1:], os.Stdout)
	if err == nil {
		err = serve(o)
	}
	// --help and --version are no failures.
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	// The same form as clove's own errors: the step, the message and a hint.
	failure := agent.FailureOf(err)
	if failure.Step != "" {
		failure.Message = failure.Step + ": " + failure.Message
	}
	fmt.Fprintln(os.Stderr, "cloved:", failure.Message)
	if failure.Hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", failure.Hint)
	}
	os.Exit(1)
}

// options are the command line. root and runDir are absolute. An empty socket means that of
// the configuration.
type options struct {
	root, runDir, config, socket string
}

// paths are the directories of this installation.
func (o options) paths() runtime.Paths { return runtime.Paths{State: o.root, Run: o.runDir} }

// readOptions returns flag.ErrHelp after --help or --version, whose text it writes to out.
func readOptions(args []string, out io.Writer) (options, error) {
	var o options
	// ContinueOnError, because the default prints usage and exits with 2.
	flags := flag.NewFlagSet("cloved", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints an error once
	asked := flags.Bool("version", false, "print the version and end")
	flags.StringVar(&o.root, "root", environment("CLOVE_ROOT", runtime.DefaultPaths.State), "directory that keeps records, layers and logs")
	flags.StringVar(&o.runDir, "run-dir", environment("CLOVE_RUN_DIR", runtime.DefaultPaths.Run), "directory of the live runs, on a tmpfs")
	flags.StringVar(&o.config, "config", daemon.DefaultConfigFile, "configuration file")
	flags.StringVar(&o.socket, "socket", os.Getenv("CLOVE_SOCKET"), "socket to listen on (default: the configuration's)")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		fmt.Fprintln(out, "cloved runs detached agents, and serves its API on a socket.")
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, &agent.Error{Kind: agent.KindInvalid, Message: err.Error(), Hint: "cloved --help lists the flags"}
	case *asked:
		fmt.Fprintln(out, "cloved", version)
		return o, flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return o, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("it takes no arguments, but there is %q", flags.Arg(0)), Hint: "cloved --help"}
	}
	// cloved hands the paths to supervisors, whose working directory is another one.
	for _, path := range []*string{&o.root, &o.runDir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	return o, nil
}

// environment is a flag's default. clove reads the same variables, so that both mean the
// same installation.
func environment(name, standard string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return standard
}

// firstInherited is the first descriptor after the standard streams.
const firstInherited = 3

// serve is the whole life of one cloved. The order matters: the lock comes before
// everything that another cloved could disturb, and the socket last, because clients may
// connect as soon as it exists.
func serve(o options) error {
	// The supervisors outlive cloved and must not inherit descriptors that cloved was started with.
	if err := unix.CloseRange(firstInherited, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("cannot make inherited descriptors close-on-exec: %w", err)
	}
	// First: it takes systemd's variables out of the environment, which supervisors
	// inherit.
	notifier := daemon.NewNotifier()
	config, err := daemon.LoadConfig(o.config)
	if err != nil {
		return err
	}
	o.socket = cmp.Or(o.socket, config.Socket, filepath.Join(o.runDir, "clove.sock"))
	sandboxes, err := runtime.Open(o.paths())
	if err != nil {
		return err
	}
	// One cloved for each state directory: two would start the same queued runs.
	lock, err := daemon.Lock(o.root)
	if err != nil {
		return err
	}
	defer lock.Close()
	// Keeps others from using this state directory with another run directory for as long
	// as cloved lives.
	sign, err := sandboxes.Serve()
	if err != nil {
		return err
	}
	defer sign.Close()
	// Found now, because an error at the first start of a run would come too late.
	clove, err := daemon.FindClove()
	if err != nil {
		return err
	}
	w, err := watch(config)
	if err != nil {
		return err
	}
	defer w.close()
	log := w.log
	d := daemon.New(w.complete(daemon.Options{Paths: o.paths(), ConfigFile: o.config, Config: config, Sandboxes: sandboxes, Clove: clove}))
	// The socket is the last thing that can fail.
	listener, group, err := daemon.Listen(o.socket, config.Group)
	if err != nil {
		return err
	}
	if group < 0 && config.Group != "" {
		log.Warn("there is no such group: only root may connect", "group", config.Group)
	}
	alive, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, unix.SIGHUP)                                                                                 // before cloved reports that it is ready: SIGHUP would kill it
	go reload(alive, hangups, d, notifier, log)                                                                         // ends with alive
	go notifier.Feed(alive, d.Healthy, func(err error) { log.Error("cannot notify systemd's watchdog", "error", err) }) // ends with alive
	notified := make(chan struct{})
	// systemd is notified when the stop begins, because Serve returns only after the last
	// answer.
	stopNotify := context.AfterFunc(alive, func() {
		notifier.Send(daemon.NotifyStopping)
		close(notified)
	})
	err = d.Serve(alive, listener, group, func() {
		log.Info("ready", "socket", o.socket, "version", version)
		notifier.Ready("serves " + o.socket)
	})
	if !stopNotify() {
		<-notified // Serve may return before systemd is notified
	}
	return err
}

// reload reloads the configuration at each SIGHUP until ctx ends. systemd is notified of
// both ends of it (sd_notify(3), RELOADING=1).
func reload(ctx context.Context, hangups <-chan os.Signal, d *daemon.Daemon, notifier daemon.Notifier, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			notifier.Reloading()
			status := "the configuration was reloaded"
			if err := d.Reload(); err != nil {
				log.Error("the configuration was not reloaded", "error", err)
				status = "the configuration was not reloaded: " + err.Error()
			}
			notifier.Ready(status)
		}
	}
}
