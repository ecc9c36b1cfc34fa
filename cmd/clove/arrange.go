package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// invocation is a command line in the order that urfave/cli takes: flags of all
// commands, the command, its flags, "--", its arguments.
type invocation struct {
	command string // empty: none was given
	argv    []string
}

// arrange puts the flags before the arguments, because urfave/cli stops reading flags at
// the first argument. Arguments behind "--" are neither read nor moved. For run and render a
// second "--" stays between SCRIPT and the arguments behind the first one, so that
// the two can be distinguished.
func arrange(args []string, commands []*cli.Command) (invocation, error) {
	a := arranger{flags: flagTable{}}
	a.flags.add(globalFlags(), true)
	a.flags["--"+flagHelp], a.flags["-h"] = flagRow{name: flagHelp}, flagRow{name: flagHelp}
	if len(args) == 1 && args[0] == "--version" { // other programs spell it so
		args = []string{"version"}
	}
	rest, err := a.leading(args)
	if err != nil {
		return invocation{}, err
	}
	if len(rest) == 0 {
		return invocation{argv: slices.Concat(a.global, a.own)}, nil
	}
	name, rest := rest[0], rest[1:]
	// `clove help run` is `clove run --help`. urfave/cli's own help command is turned
	// off.
	if name == flagHelp {
		return arrange(slices.Concat(rest, []string{"--" + flagHelp}), commands)
	}
	index := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == name })
	if index < 0 {
		return invocation{}, unknownCommand(append([]string{name}, rest...), commands)
	}
	a.command = name
	a.flags.add(commands[index].Flags, false)
	if row, has := a.flags["--"+settings.NetworkMode]; has {
		a.flags["--net"] = row // docker's other name
	}
	if err := a.all(rest); err != nil {
		return invocation{command: name}, err
	}
	if err := a.refuseBytes(); err != nil {
		return invocation{command: name}, err
	}
	if len(a.behind) > 1 && isShort(a.behind[1]) && !slices.Contains(a.own, helpWanted) {
		if err := a.asProgram(); err != nil {
			return invocation{command: name}, err
		}
	}
	if slices.Contains(a.own, helpWanted) {
		a.args = nil // urfave/cli would look for a command of that name
	}
	return invocation{command: name, argv: slices.Concat(a.global, []string{name}, a.own, []string{terminator}, a.args)}, nil
}

// refuseBytes rejects flags that are not UTF-8: urfave/cli, policies and the store keep values in
// JSON, which would change such bytes. Arguments may have any bytes (agent.RawStrings).
func (a *arranger) refuseBytes() error {
	for _, given := range slices.Concat(a.global, a.own) {
		if name, value, _ := strings.Cut(given, "="); !utf8.ValidString(given) {
			return invalid(strings.TrimLeft(name, "-"), "rename what it names; arguments of the agent may have any bytes", "%.64q is not UTF-8", value)
		}
	}
	return nil
}

// helpWanted is how arrange writes --help, and -h.
const helpWanted = "--" + flagHelp + "=true"

// flagRow is one spelling of a flag.
type flagRow struct {
	name       string // the flag's first name, without dashes
	takesValue bool
	global     bool
}

// flagTable finds a flag by its spelling, dashes included.
type flagTable map[string]flagRow

// add adds every spelling that urfave/cli takes. Only BoolFlags need no value there.
func (t flagTable) add(flags []cli.Flag, global bool) {
	for _, f := range flags {
		_, isSwitch := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			t[spelling(name)] = flagRow{name: f.Names()[0], takesValue: !isSwitch, global: global}
		}
	}
}

// spelling follows the convention of one dash before a letter and two before a name.
func spelling(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// arranger sorts one command line into three lists and keeps the order within each: of
// a repeated flag the last value counts.
type arranger struct {
	command           string // empty while the flags before it are read
	flags             flagTable
	global, own, args []string // global: before the command
	behind            []string // the first argument and all that was typed behind it
}

// leading takes the flags before the command's name.
func (a *arranger) leading(args []string) (rest []string, err error) {
	for len(args) > 0 && isFlag(args[0]) {
		if args[0] == terminator {
			return nil, &agent.Error{Kind: agent.KindInvalid, Message: `there is no command before "--"`, Hint: "clove run -- COMMAND"}
		}
		if args, err = a.take(args); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// all takes everything behind the command's name.
func (a *arranger) all(args []string) (err error) {
	for len(args) > 0 {
		switch {
		// Behind the run's name everything is the command, as with docker exec.
		case a.command == execName && len(a.args) > 0:
			if args[0] == terminator {
				args = args[1:]
			}
			a.args = append(a.args, args...)
			return nil
		case args[0] == terminator && (a.command == runName || a.command == renderName):
			a.args = append(a.args, args...)
			return nil
		case args[0] == terminator:
			a.args = append(a.args, args[1:]...)
			return nil
		case isFlag(args[0]):
			if args, err = a.take(args); err != nil {
				return err
			}
		default:
			if len(a.args) == 0 {
				a.behind = args
			}
			a.args, args = append(a.args, args[0]), args[1:]
		}
	}
	return nil
}

// isFlag reports whether an argument is a flag. A lone "-" is an argument: cp and debug take
// it for a stream.
func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// isShort reports whether an argument is flags of one letter.
func isShort(arg string) bool { return isFlag(arg) && arg[1] != '-' }

// take moves the flag or flags of args[0] and returns what follows them.
func (a *arranger) take(args []string) (rest []string, err error) {
	if strings.HasPrefix(args[0], "--") {
		return a.takeLong(args)
	}
	return a.takeShort(args)
}

// takeLong reads "--name", "--name=value" and "--name value". Long names are
// never shortened: "--mem" would change its meaning with the next flag.
func (a *arranger) takeLong(args []string) (rest []string, err error) {
	spelled, value, attached := strings.Cut(args[0], "=")
	row, known := a.flags[spelled]
	// Single letters have one dash: "--m" is not "-m".
	if !known || len(spelled) < 4 {
		return nil, a.unknown(spelled)
	}
	switch {
	case row.takesValue && !attached:
		return a.takeValue(row, spelled, args[1:])
	case !row.takesValue && !attached:
		value = "true"
	case !row.takesValue:
		// Checked here, because urfave/cli's message would not name the flag as it was
		// typed.
		if _, err := strconv.ParseBool(value); err != nil {
			return nil, &agent.Error{Kind: agent.KindInvalid, Step: spelled, Message: fmt.Sprintf("%q is neither true nor false", value)}
		}
	}
	a.keep(row, value)
	return args[1:], nil
}

// takeShort reads "-it" as "-i -t", and "-m1G" as "-m 1G".
func (a *arranger) takeShort(args []string) (rest []string, err error) {
	cluster := args[0][1:]
	if name, _, _ := strings.Cut(cluster, "="); len(name) > 1 && a.flags["--"+name].name != "" {
		return nil, a.unknown("-" + name) // not -m with the value "emory"
	}
	for i, letter := range cluster {
		spelled := "-" + string(letter)
		row, known := a.flags[spelled]
		// docker's -h NAME; alone it shows the help.
		if host, has := a.flags["--"+settings.Hostname]; has && letter == 'h' && (i+1 < len(cluster) || len(args) > 1 && !isFlag(args[1])) {
			row = host
		}
		if !known {
			// The whole argument and not the letter: "-foo" may be meant as "--foo".
			return nil, a.unknown(args[0])
		}
		if !row.takesValue {
			a.keep(row, "true")
			continue
		}
		if value := cluster[i+len(string(letter)):]; value != "" {
			// docker takes "-m=1G" as well.
			a.keep(row, strings.TrimPrefix(value, "="))
			return args[1:], nil
		}
		return a.takeValue(row, spelled, args[1:])
	}
	return args[1:], nil
}

// takeValue takes the next argument as the value, even if it begins with a dash. Only
// "--" is refused there: it means that the value was forgotten.
func (a *arranger) takeValue(row flagRow, spelled string, args []string) (rest []string, err error) {
	if len(args) == 0 || args[0] == terminator {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: spelled, Message: "a value is missing", Hint: "write " + spelled + " VALUE"}
	}
	a.keep(row, args[0])
	return args[1:], nil
}

// keep writes a flag as --name=value, the one form in which urfave/cli never looks at
// the next argument.
func (a *arranger) keep(row flagRow, value string) {
	flag := "--" + row.name + "=" + value
	if row.global {
		a.global = append(a.global, flag)
		return
	}
	a.own = append(a.own, flag)
}

// wantsJSON looks for --json before anything is parsed, so that a mistake in the flags
// is reported in the form that was asked for.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case terminator:
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}
