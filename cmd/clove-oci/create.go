package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
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
const notifySocket = "NOTIFY_SOCKET"

// configName is a bundle's description of its container.
const configName = "config.json"

func bundleFlag() cli.Flag {
	return &cli.StringFlag{Name: flagBundle, Aliases: []string{"b"}, Usage: "directory of the bundle (default: the current one)"}
}

// createFlags are create's, and run's too.
func createFlags() []cli.Flag {
	return []cli.Flag{
		bundleFlag(),
		&cli.StringFlag{Name: flagConsoleSocket, Usage: "socket that gets the terminal's master"},
		&cli.StringFlag{Name: flagPidfdSocket, Usage: "socket that gets a pidfd of the first process"},
		&cli.StringFlag{Name: flagPidFile, Usage: "file to write the first process's id to"},
		&cli.BoolFlag{Name: flagNoPivot, Usage: "do not use pivot_root: the root is on a ramdisk"},
		&cli.BoolFlag{Name: flagNoNewKeyring, Usage: "let the container have the caller's session keyring"},
		&cli.IntFlag{Name: flagPreserveFDs, Usage: "hand on so many descriptors besides the standard streams"},
	}
}

func (p *program) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make a container whose process waits for start", ArgsUsage: "ID", Flags: createFlags(),
		Action: func(c *cli.Context) error {
			if err := checkArgs(c, 1, 1); err != nil {
				return err
			}
			return failed("create", p.launch(c, container.Start{Wait: true}))
		},
	}
}

func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "make a container and start it", ArgsUsage: "ID",
		Flags: append(createFlags(),
			&cli.BoolFlag{Name: flagDetach, Aliases: []string{"d"}, Usage: "do not stay with the process"},
			&cli.BoolFlag{Name: flagKeep, Usage: "do not delete the container when it ended"},
			&cli.BoolFlag{Name: flagNoSubreaper, Usage: "leave the container's orphans to others"}),
		Action: func(c *cli.Context) error {
			if err := checkArgs(c, 1, 1); err != nil {
				return err
			}
			return failed("run", p.launch(c, container.Start{
				Detach: c.Bool(flagDetach), Keep: c.Bool(flagKeep), Subreaper: !c.Bool(flagNoSubreaper)}))
		},
	}
}

// failed is how runc says it, with this program's name.
func failed(command string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("clove-oci %s failed: %w", command, err)
}

// launch makes the container of a bundle and starts its process.
func (p *program) launch(c *cli.Context, start container.Start) (err error) {
	if start.PidFile, err = absolute(c.String(flagPidFile)); err != nil {
		return err
	}
	// Relative paths are the caller's: all of them before the bundle becomes the current directory.
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
	// Before libcontainer sees it: what an annotation forbids must never exist, not even to wait.
	rules, err := oci.Apply(spec, c.Args().First())
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("it needs root: there are no rootless containers here")
	}
	e := engine(c)
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

// stateVariable moves what clove keeps, as it does for clove and cloved.
const stateVariable = "CLOVE_ROOT"

// recordsDir is where records go on this node: by the flag, because some engines
// hand no environment on, or by the engine's environment. The container's does not count.
func recordsDir(c *cli.Context) (string, error) {
	if directory := c.String(flagRecords); directory != "" {
		return filepath.Abs(directory)
	}
	if state := os.Getenv(stateVariable); state != "" {
		return filepath.Abs(filepath.Join(state, filepath.Base(oci.RecordsDir)))
	}
	return oci.RecordsDir, nil
}

// absolute keeps a path what it is when the bundle becomes the current directory.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// loadBundle makes the bundle the current directory: its paths are relative to it.
func loadBundle(directory string) (*specs.Spec, error) {
	if directory != "" {
		if err := os.Chdir(directory); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(configName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("JSON specification file %s not found", configName) // runc's words
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var spec *specs.Spec
	if err := json.NewDecoder(file).Decode(&spec); err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, errors.New("config cannot be null")
	}
	return spec, container.CheckProcess(spec.Process)
}
