package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// verbatim are the commands whose arguments after the id are left as they are: those of
// exec and ps belong to another program, and checkpoint and restore are refused
// whatever follows.
var verbatim = []string{"exec", "ps", "checkpoint", "restore"}

// arrange puts a command's flags before its arguments. urfave/cli stops reading flags
// at the first argument; runc takes them in any order (`delete ID --force`), and
// scripts that call it rely on that.
func arrange(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	// The global flags come first: the command is the first word that is neither a flag
	// nor a flag's value.
	at := 1
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		at += width(app.Flags, args[at])
	}
	if at >= len(args) {
		return args
	}
	command := app.Command(args[at])
	if command == nil || slices.Contains(verbatim, command.Name) {
		return args
	}
	flags, rest := split(command.Flags, args[at+1:])
	return slices.Concat(args[:at+1], flags, rest)
}

// split separates the flags of args, with their values, from the rest. After -- there
// are none. An argument that only looks like a flag stays where it is, so that urfave/cli
// reports it by its name.
func split(known []cli.Flag, args []string) (flags, rest []string) {
	for i := 0; i < len(args); {
		if args[i] == "--" {
			return flags, append(rest, args[i:]...)
		}
		if find(known, args[i]) == nil {
			rest = append(rest, args[i])
			i++
			continue
		}
		// A flag whose value is missing is the last word; urfave/cli reports that.
		end := min(i+width(known, args[i]), len(args))
		flags = append(flags, args[i:end]...)
		i = end
	}
	return flags, rest
}

// width is how many arguments a flag takes, itself included. An unknown flag takes one:
// without its definition nothing tells whether the next word is its value.
func width(known []cli.Flag, arg string) int {
	flag := find(known, arg)
	if _, bare := flag.(*cli.BoolFlag); flag == nil || bare || strings.Contains(arg, "=") {
		return 1
	}
	return 2
}

// find returns the flag that arg spells, or nil. One dash is as good as two for every
// name, as in Go's flag package, which runc's command line is built on.
func find(known []cli.Flag, arg string) cli.Flag {
	name, dashed := strings.CutPrefix(arg, "-")
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	i := slices.IndexFunc(known, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if !dashed || i < 0 {
		return nil
	}
	return known[i]
}
