package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
	"clove.run/clove/policies/host"
)

const (
	flagBundle        = "bundle"
	flagConsoleSocket = "console-socket"
	flagPidfdSocket   = "pidfd-socket"
	flagPidFile       = "pid-file"
	flagNoPivot       = "no-pivot"
	flagNoNewKeyring  = "no-new-keyring"
	flagPreserveFDs   = "preserve-fds"
	flagDetach        = "detach"
	flagKeep          = "keep"
	flagNoSubreaper   = "no-subreaper"
)

// notifySocket is the variable that names the service manager's socket, sd_notify(3).
// systemd sets it for a unit of Type=notify whose main program is an engine or
// clove-oci itself.
const notifySocket = "NOTIFY_SOCKET"

// configName is the file of a bundle that describes its container. The runtime
// specification fixes the name.
const configName = "config.json"

// bundleFlag is shared by create, run and spec.
func bundleFlag() cli.Flag {
	return &cli.StringFlag{Name: flagBundle, Aliases: []string{"b"}, Usage: "directory of the bundle (default: the current one)"}
}

// createFlags are the flags of create and run, with runc's names: shims and conmon
// write them literally.
func createFlags() []cli.Flag {
	return []cli.Flag{
		bundleFlag(),
		&cli.StringFlag{Name: flagConsoleSocket, Usage: "socket that gets the terminal's master"},
		&cli.StringFlag{Name: flagPidfdSocket, Usage: "socket that gets a pidfd of the first process"},
		&cli.StringFlag{Name: flagPidFile, Usage: "file to write the first process's id to"},
		&cli.BoolFlag{Name: flagNoPivot, Usage: "do not use pivot_root: the root is on a ramdisk"},
		&cli.BoolFlag{Name: flagNoNewKeyring, Usage: "let the container have the caller's session keyring"},
		&cli.IntFlag{Name: flagPreserveFDs, Usage: "pass this many file descriptors on, after the standard streams"},
	}
}

// createCommand prepares a container and ends. Its process waits for start, because
// engines attach networks and streams between the two calls.
func (p *program) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make a container whose process waits for start", ArgsUsage: "ID", Flags: createFlags(),
		Action: taking(1, 1, func(c *cli.Context) error { return failed("create", p.launch(c, container.Start{Wait: true})) }),
	}
}

// runCommand is create, start and, unless detached, delete in one process, for people
// and scripts; engines use the separate calls.
func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "make a container and start it", ArgsUsage: "ID",
		Flags: append(createFlags(),
			&cli.BoolFlag{Name: flagDetach, Aliases: []string{"d"}, Usage: "do not stay with the process"},
			&cli.BoolFlag{Name: flagKeep, Usage: "do not delete the container when it ended"},
			&cli.BoolFlag{Name: flagNoSubreaper, Usage: "do not become the reaper of the container's orphaned processes"}),
		Action: taking(1, 1, func(c *cli.Context) error {
			return failed("run", p.launch(c, container.Start{
				Detach: c.Bool(flagDetach), Keep: c.Bool(flagKeep), Subreaper: !c.Bool(flagNoSubreaper)}))
		}),
	}
}

// failed gives an error the prefix that runc writes, with this program's name. Engines
// show the line to their users.
func failed(command string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("clove-oci %s failed: %w", command, err)
}

// launch makes the container of a bundle and starts its process. The checks that need
// no container come first, because what exists after a failure must be removed again.
func (p *program) launch(c *cli.Context, start container.Start) (err error) {
	if start.PidFile, err = absolute(c.String(flagPidFile)); err != nil {
		return err
	}
	// Relative paths are relative to the caller's directory, so all are resolved before
	// loadBundle changes to the bundle.
	records, err := recordsDir(c)
	if err != nil {
		return err
	}
	socket, err := filepath.Abs(clovedSocket())
	if err != nil {
		return err
	}
	spec, err := loadBundle(c.String(flagBundle))
	if err != nil {
		return err
	}
	if c.Args().First() == "" {
		return errors.New("container id cannot be empty")
	}
	// Before libcontainer sees the config: a container that an annotation forbids must
	// not exist, not even waiting for its start.
	rules, err := oci.Apply(spec, c.Args().First())
	if err != nil {
		return err
	}
	if err := checkCeiling(rules, host.PoliciesDir()); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("it needs root: there are no rootless containers here")
	}
	e := engine(c)
	// Only here do the hooks have rules: the later calls read what Created wrote into
	// the container's directory.
	e.Hooks = hooks{monitor.Client{Rules: rules, Records: records, Socket: socket}}
	made, err := e.Create(c.Args().First(), spec,
		container.Options{
			NoPivot: c.Bool(flagNoPivot), NoNewKeyring: c.Bool(flagNoNewKeyring), NotifySocket: os.Getenv(notifySocket)})
	if err != nil {
		return err
	}
	start.ConsoleSocket, start.PidfdSocket = c.String(flagConsoleSocket), c.String(flagPidfdSocket)
	start.PreserveFDs, start.NetworkRules = c.Int(flagPreserveFDs), rules.Network != ""
	p.status, err = made.Run(spec.Process, start)
	return err
}

// stateVariable names clove's state directory. clove and cloved read the same variable,
// so that all programs of one installation agree.
const stateVariable = "CLOVE_ROOT"

// recordsDir is the directory of records on this node: the flag's, because some engines
// (Podman) do not pass their environment on, or the one that the engine's environment
// names. The container's environment has no influence: its author could choose which
// files root writes.
func recordsDir(c *cli.Context) (string, error) {
	if directory := c.String(flagRecords); directory != "" {
		return filepath.Abs(directory)
	}
	if state := os.Getenv(stateVariable); state != "" {
		return filepath.Abs(filepath.Join(state, filepath.Base(oci.RecordsDir)))
	}
	return oci.RecordsDir, nil
}

// absolute resolves a path against the caller's directory, before the bundle becomes
// the current one. An empty path stays empty: the flag was not given.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// loadBundle changes to the bundle's directory, because root.path in config.json may be
// relative to it, and reads config.json.
func loadBundle(directory string) (*specs.Spec, error) {
	if directory != "" {
		if err := os.Chdir(directory); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(configName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("JSON specification file %s not found", configName) // runc's message, which callers compare with
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// A pointer: `null` is valid JSON and leaves it nil.
	var spec *specs.Spec
	if err := decode(file, &spec); err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, errors.New("config cannot be null")
	}
	return spec, container.CheckProcess(spec.Process)
}
