package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

const (
	flagProcess        = "process"
	flagCwd            = "cwd"
	flagEnv            = "env"
	flagTTY            = "tty"
	flagUser           = "user"
	flagAdditionalGids = "additional-gids"
	flagCap            = "cap"
	flagNoNewPrivs     = "no-new-privs"
	flagApparmor       = "apparmor"
	flagProcessLabel   = "process-label"
	flagIgnorePaused   = "ignore-paused"
	flagCgroup         = "cgroup"
)

// execFailed is the exit status of an exec whose process never ran, as with runc, so
// that it is not taken for the status of the process.
const execFailed = 255

// execCommand has runc's flags. Shims give a whole process as a file (--process); the
// other flags are for people.
func (p *program) execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run one more process in a container", ArgsUsage: "ID COMMAND [ARGUMENT...] | --process FILE ID",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagConsoleSocket, Usage: "socket that gets the terminal's master"},
			&cli.StringFlag{Name: flagPidfdSocket, Usage: "socket that gets a pidfd of the process"},
			&cli.StringFlag{Name: flagCwd, Usage: "working directory in the container"},
			&cli.StringSliceFlag{Name: flagEnv, Aliases: []string{"e"}, Usage: "variable to set, NAME=VALUE"},
			&cli.BoolFlag{Name: flagTTY, Aliases: []string{"t"}, Usage: "give it a terminal"},
			&cli.StringFlag{Name: flagUser, Aliases: []string{"u"}, Usage: "UID[:GID] in the container"},
			&cli.Int64SliceFlag{Name: flagAdditionalGids, Aliases: []string{"g"}, Usage: "one more group"},
			&cli.StringFlag{Name: flagProcess, Aliases: []string{"p"}, Usage: "file with the process, as in config.json; replaces the other flags"},
			&cli.BoolFlag{Name: flagDetach, Aliases: []string{"d"}, Usage: "do not stay with the process"},
			&cli.StringFlag{Name: flagPidFile, Usage: "file to write the process's id to"},
			&cli.StringFlag{Name: flagProcessLabel, Usage: "SELinux label"},
			&cli.StringFlag{Name: flagApparmor, Usage: "AppArmor profile"},
			&cli.BoolFlag{Name: flagNoNewPrivs, Usage: "set no_new_privs"},
			&cli.StringSliceFlag{Name: flagCap, Aliases: []string{"c"}, Usage: "one more capability"},
			&cli.IntFlag{Name: flagPreserveFDs, Usage: "pass this many file descriptors on, after the standard streams"},
			&cli.StringSliceFlag{Name: flagCgroup, Usage: "put it below the container's cgroup, into an existing [CONTROLLER[,CONTROLLER]:]CGROUP"},
			&cli.BoolFlag{Name: flagIgnorePaused, Usage: "start it in a paused container, too"},
		},
		Action: taking(1, unlimited, func(c *cli.Context) error {
			if err := p.join(c); err != nil {
				return cli.Exit(fmt.Errorf("exec failed: %w", err), execFailed)
			}
			return nil
		}),
	}
}

// join runs the command line's process in the container, with no more rights than the
// annotations leave to the container's first process.
func (p *program) join(c *cli.Context) error {
	pidFile, err := absolute(c.String(flagPidFile))
	if err != nil {
		return err
	}
	// Loading also starts a monitor again that was killed, so no process is added to a
	// container whose deadline is not enforced.
	found, err := engine(c).Load(c.Args().First())
	if err != nil {
		return err
	}
	cgroups, err := parseCgroups(c.StringSlice(flagCgroup))
	if err != nil {
		return err
	}
	process, err := p.execProcess(c, found)
	if err != nil {
		return err
	}
	state, err := found.State()
	if err != nil {
		return err
	}
	if err := checkExec(state, found.Waits()); err != nil {
		return err
	}
	// The annotations are those that create saved: the bundle's file may have changed
	// since.
	if err := oci.TightenProcess(state.Annotations, process); err != nil {
		return err
	}
	order, _, err := oci.Guarded(state.Annotations, state.ID)
	if err != nil {
		return err
	}
	p.status, err = found.Join(process, container.Start{
		Detach: c.Bool(flagDetach), PidFile: pidFile, ConsoleSocket: c.String(flagConsoleSocket),
		PidfdSocket: c.String(flagPidfdSocket), PreserveFDs: c.Int(flagPreserveFDs), Cgroups: cgroups,
		NetworkRules: order.Network != "",
	}, c.Bool(flagIgnorePaused))
	return err
}

// checkExec refuses an exec in a container whose first process still waits, if its
// annotations have rules that begin with the start: network rules, deadline and record
// do not apply yet, so the new process would run without them.
func checkExec(state container.State, waits bool) error {
	rules, err := oci.For(state.Annotations, state.ID)
	if err != nil || !waits || rules.Network == "" && !monitor.Needed(rules) {
		return err
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Message: "cannot exec in a container that was not started: its network, deadline and record begin with its start",
		Hint: "start it first"}
}

// execProcess returns the process that the command line describes: a file's process, or
// the bundle's own process with another command, user and environment.
func (p *program) execProcess(c *cli.Context, found *container.Container) (*specs.Process, error) {
	if path := c.String(flagProcess); path != "" {
		return readProcess(path)
	}
	state, err := found.State()
	if err != nil {
		return nil, err
	}
	spec, err := loadBundle(state.Bundle)
	if err != nil {
		return nil, err
	}
	if c.NArg() < 2 {
		return nil, errors.New("exec args cannot be empty")
	}
	process := spec.Process
	process.Args = c.Args().Tail()
	process.Env = append(process.Env, c.StringSlice(flagEnv)...)
	// Not what config.json says: an exec without -t has no terminal, even in a
	// container that has one.
	process.Terminal = c.Bool(flagTTY)
	// Without the flag the container's own setting stays; with a default of false, an
	// exec would drop no_new_privs.
	if c.IsSet(flagNoNewPrivs) {
		process.NoNewPrivileges = c.Bool(flagNoNewPrivs)
	}
	for flag, value := range map[string]*string{flagCwd: &process.Cwd, flagApparmor: &process.ApparmorProfile, flagProcessLabel: &process.SelinuxLabel} {
		if given := c.String(flag); given != "" {
			*value = given
		}
	}
	addCapabilities(process, c.StringSlice(flagCap))
	if err := setUser(&process.User, c.String(flagUser), c.Int64Slice(flagAdditionalGids)); err != nil {
		return nil, err
	}
	return process, container.CheckProcess(process)
}

// readProcess reads the file that an engine writes for one exec. Nothing of the command
// line is merged into it: it is the whole process.
func readProcess(path string) (*specs.Process, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var process specs.Process
	if err := decode(file, &process); err != nil {
		return nil, err
	}
	return &process, container.CheckProcess(&process)
}

// addCapabilities gives a process further capabilities, in every set but the
// inheritable one: programs with inheritable file capabilities would get them too. The
// ambient set needs the inheritable one, so it gets them only if the config has an
// inheritable set.
func addCapabilities(process *specs.Process, names []string) {
	if len(names) == 0 {
		return
	}
	if process.Capabilities == nil {
		process.Capabilities = &specs.LinuxCapabilities{}
	}
	all := process.Capabilities
	all.Bounding = append(all.Bounding, names...)
	all.Effective = append(all.Effective, names...)
	all.Permitted = append(all.Permitted, names...)
	if all.Inheritable != nil {
		all.Ambient = append(all.Ambient, names...)
	}
}

// setUser reads UID[:GID]; what is not given keeps the value of config.json. Names are
// not looked up, as with runc: engines resolve them before they call.
func setUser(user *specs.User, text string, groups []int64) error {
	if text != "" {
		uid, gid, both := strings.Cut(text, ":")
		if both {
			id, err := strconv.ParseUint(gid, 10, 32)
			if err != nil {
				return fmt.Errorf("bad gid: %w", err)
			}
			user.GID = uint32(id)
		}
		id, err := strconv.ParseUint(uid, 10, 32)
		if err != nil {
			return fmt.Errorf("bad uid: %w", err)
		}
		user.UID = uint32(id)
	}
	for _, group := range groups {
		if group < 0 || group > 1<<32-1 {
			return fmt.Errorf("additional-gids must be a positive number %d", group)
		}
		user.AdditionalGids = append(user.AdditionalGids, uint32(group))
	}
	return nil
}

// parseCgroups reads the cgroups below the container's own that a process joins: on
// cgroup v2 one path with the key "", on v1 one path for each named controller. The
// messages are runc's.
func parseCgroups(given []string) (map[string]string, error) {
	paths := map[string]string{}
	for _, text := range given {
		controllers, path, named := strings.Cut(text, ":")
		if !named {
			if len(given) != 1 {
				return nil, fmt.Errorf("invalid --cgroup argument: %s (missing <controller>: prefix)", text)
			}
			return map[string]string{"": text}, nil
		}
		for controller := range strings.SplitSeq(controllers, ",") {
			if controller == "" {
				return nil, fmt.Errorf("invalid --cgroup argument: %s (empty <controller> prefix)", text)
			}
			if _, twice := paths[controller]; twice {
				return nil, fmt.Errorf("invalid --cgroup argument(s): controller %s specified multiple times", controller)
			}
			paths[controller] = path
		}
	}
	return paths, nil
}
