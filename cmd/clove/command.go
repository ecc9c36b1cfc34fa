package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/cmd/clove/verbs"
)

// tasks are the headings of clove --help, under which commands are, in its order.
var tasks = []string{"run", "look", "change", "decide", "share", "administer"}

// command is a row of the table of commands. Its help, its part of the manual page, completion, the
// arguments that it takes and the errors about them follow from the row.
type command struct {
	task        string // one of tasks; empty: only clove's own programs call it
	usage       string // in one line
	description string
	verbs       []verb     // one: the command has no verb in its lines
	alone       *verb      // what it does without a verb; nil: one is needed, where there are several
	text        string     // the usage lines; empty: those of the verbs
	flags       []cli.Flag // of all verbs
	runs        string     // which runs completion offers as arguments: completeLive or completeAll; empty: files
}

// verb is one thing that a command does.
type verb struct {
	line string // the usage line (package verbs); those behind it are other forms of the same
	act  action
	also []string // flags that the line leaves out
	free bool     // act counts its arguments itself
}

// action is what a verb does.
type action interface {
	run(p program, l *line) error
}

// line is a command line that was read.
type line struct {
	*cli.Context
	usage verbs.Usage
	args  []string // behind the verb
}

// cli is the command as urfave/cli takes it.
func (c *command) cli(p program) *cli.Command {
	var lines []string
	if c.alone != nil {
		lines = append(lines, c.alone.line)
	}
	for _, v := range c.verbs {
		lines = append(lines, v.line)
	}
	return &cli.Command{Name: c.name(), Usage: c.usage, UsageText: cmp.Or(c.text, strings.Join(lines, "\n")), Description: c.description,
		Flags: c.flags, Category: c.task, Hidden: c.task == "", Before: before,
		HideHelpCommand: true, // a script may be called "help"
		Action:          func(given *cli.Context) error { return c.do(p, given) }}
}

func (c *command) name() string { return strings.Fields(c.verbs[0].line)[1] }

// verbNames are the names of the verbs where there are several, in the command's order.
func (c *command) verbNames() (all []string) {
	for _, v := range c.verbs {
		if len(c.verbs) > 1 {
			all = append(all, strings.Fields(v.line)[2])
		}
	}
	return all
}

// parsed is what a verb's first usage line says.
func (c *command) parsed(v verb) verbs.Usage {
	first, _, _ := strings.Cut(v.line, "\n")
	return verbs.Parse(first, func(spelled string) bool { return described(c.flag(spelled)).TakesValue() })
}

// do finds the verb and checks what it gets.
func (c *command) do(p program, given *cli.Context) error {
	l, at := &line{Context: given, args: given.Args().Slice()}, 0
	names := c.verbNames()
	if c.alone != nil && !slices.Contains(names, given.Args().First()) {
		return c.act(p, *c.alone, l)
	}
	if names != nil {
		if at = slices.Index(names, given.Args().First()); at < 0 {
			return c.wrongArguments(l)
		}
		l.args = l.args[1:]
	}
	v := c.verbs[at]
	if v.free {
		return c.act(p, v, l)
	}
	l.usage = c.parsed(v)
	if !l.usage.Takes(len(l.args)) {
		return c.wrongArguments(l)
	}
	if names != nil {
		if err := c.refuseFlags(l, v.also); err != nil {
			return err
		}
	}
	return c.act(p, v, l)
}

// act does what the verb does. A run that does not exist may be misspelled.
func (c *command) act(p program, v verb, l *line) error {
	err := v.act.run(p, l)
	if c.runs != "" && len(l.args) > 0 {
		return p.nearRun(l.Context, l.args[0], err)
	}
	return err
}

// refuseFlags refuses flags of another verb.
func (c *command) refuseFlags(l *line, also []string) error {
	for _, flag := range l.LocalFlagNames() {
		taken := slices.Contains(also, flag) || slices.ContainsFunc(l.usage.Flags, func(spelled string) bool { return c.flag(spelled).Names()[0] == flag })
		if !taken && len(flag) > 1 { // one letter is another name of a flag
			return invalid(flag, "clove "+c.name()+" --help says whose it is", "clove %s %s does not take it", c.name(), l.Args().First())
		}
	}
	return nil
}

// wrongArguments is the error for arguments that the command does not take.
func (c *command) wrongArguments(l *line) error {
	name, count := c.name(), len(l.args)
	err := &agent.Error{Kind: agent.KindInvalid, Step: name, Hint: "clove " + name + " --help"}
	switch args := l.usage.Args; {
	case len(c.verbs) > 1:
		err.Message, err.Hint = c.wrongVerb(l.Args().Slice())
	case len(args) == 0:
		err.Message = fmt.Sprintf("it takes no arguments, but there is %q", l.args[0])
	case args[0].Name == "NAME|ID" && count == 0 && len(args) > 1 && args[1].Many:
		err.Message, err.Hint = "no run is named", "clove ps -a lists them"
	case args[0].Name != "NAME|ID" || len(args) > 1:
		err.Message, err.Hint = fmt.Sprintf("it takes %d arguments, not %d", len(args), count), c.verbs[0].line
		if len(args) == 1 {
			err.Message = fmt.Sprintf("it takes one argument, not %d", count)
		}
	case args[0].Many:
		err.Message, err.Hint = "no run is named", "clove ps -a lists them"
	default:
		err.Message, err.Hint = fmt.Sprintf("it takes one run, not %d", count), "clove "+name+" NAME, or the beginning of an ID; clove ps -a lists them"
	}
	return err
}

// wrongVerb is the message and the hint for words that no verb takes.
func (c *command) wrongVerb(words []string) (message, hint string) {
	name, names := "clove "+c.name(), c.verbNames()
	if len(words) == 0 {
		return "a word is missing", name + " " + c.choices()
	}
	message = fmt.Sprintf("it does not take the words %q", words)
	if at := slices.Index(names, words[0]); at >= 0 {
		first, _, _ := strings.Cut(c.verbs[at].line, "\n")
		return message, first
	}
	if near := meant(words[0], names); near != "" {
		return message, "did you mean " + name + " " + near + "?"
	}
	return message, name + " " + c.choices()
}

// choices are the verbs with their arguments, for an error.
func (c *command) choices() string {
	all := c.verbNames()
	for i, v := range c.verbs {
		for _, a := range c.parsed(v).Args {
			all[i] += " " + a.Text
		}
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// flag finds a flag by its spelling in a usage line; nil: there is none.
func (c *command) flag(spelled string) cli.Flag {
	at := slices.IndexFunc(c.flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), strings.TrimLeft(spelled, "-")) })
	if at < 0 {
		return nil
	}
	return c.flags[at]
}

// given is what fills the parameters of a method: the flags that are set, and the arguments.
func (l *line) given() []verbs.Given {
	all, rest := givenFlags(l.Context), l.args
	for _, a := range l.usage.Args {
		count := min(1, len(rest))
		if a.Many {
			count = len(rest)
		}
		all, rest = append(all, verbs.Given{Name: a.Name, Texts: rest[:count]}), rest[count:]
	}
	return all
}

func givenFlags(c *cli.Context) (all []verbs.Given) {
	for _, name := range c.LocalFlagNames() {
		if len(name) == 1 { // another name of a flag
			continue
		}
		all = append(all, verbs.Given{Name: "--" + name, Texts: []string{c.String(name)}})
	}
	return all
}
