package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagColumn is the column at which a flag's explanation begins. A flag that is longer
// gets a line of its own.
const flagColumn = 30

// fitHelp gives each command a help text that fits a usual terminal. urfave/cli aligns
// all flags of a group behind the longest one, and breaks no line. The work is only
// done if help is asked for: every other command line would pay for it.
func fitHelp(commands []*cli.Command, args []string) {
	if !slices.ContainsFunc(args, func(arg string) bool { return arg == "--"+flagHelp || arg == "-h" || arg == flagHelp }) {
		return
	}
	for _, c := range commands {
		c.CustomHelpTemplate = helpTemplate(c)
	}
}

// helpTemplate is a command's help as a template. Only the command's whole name is left
// to urfave/cli, which knows the parents.
func helpTemplate(c *cli.Command) string {
	var b strings.Builder
	b.WriteString("NAME:\n   {{.HelpName}} - " + literal(c.Usage) + "\n\nUSAGE:\n")
	for usage := range strings.Lines(c.UsageText) {
		lines := wrapped(usage, usualWidth-7)
		fmt.Fprintf(&b, "   %s\n", literal(hanging(lines, 7)))
	}
	if c.Description != "" {
		fmt.Fprintf(&b, "\nDESCRIPTION:\n   %s\n", literal(hanging(wrapped(c.Description, usualWidth-3), 3)))
	}
	b.WriteString("\nOPTIONS:\n" + optionsText(c.Flags))
	return b.String()
}

// appHelpTemplate is the help of clove itself: the commands by task, and the flags with broken lines.
func appHelpTemplate(app *cli.App) string {
	var b strings.Builder
	b.WriteString("NAME:\n   {{template \"helpNameTemplate\" .}}\n\nUSAGE:\n   {{wrap .UsageText 3}}\n")
	for _, task := range tasks {
		b.WriteString("\n" + strings.ToUpper(task) + ":\n")
		for _, c := range app.Commands {
			if c.Category == task {
				fmt.Fprintf(&b, "   %-*s  %s\n", commandColumn, c.Name, c.Usage)
			}
		}
	}
	b.WriteString("\nGLOBAL OPTIONS:\n" + optionsText(app.Flags))
	return b.String()
}

// commandColumn is the length of the longest command's name.
const commandColumn = len("completion")

// optionsText is the part of a help that lists flags, as a template.
func optionsText(flags []cli.Flag) string {
	var b strings.Builder
	for _, group := range flagGroups(flags) {
		if name := groupOf(group[0]); name != "" {
			fmt.Fprintf(&b, "   %s\n\n", name)
		}
		for _, f := range group {
			b.WriteString(literal(flagHelpText(f)))
		}
		if groupOf(group[0]) != "" {
			b.WriteString("\n")
		}
	}
	b.WriteString("   --help, -h" + strings.Repeat(" ", flagColumn-len("   --help, -h")) + "show help\n")
	return b.String()
}

// literal keeps text from being read as a template: format flags have {{.ID}} in their
// explanation.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// flagGroups are the flags that help shows, in one list for each group; groups and
// flags are sorted by name.
func flagGroups(flags []cli.Flag) [][]cli.Flag {
	shown := slices.DeleteFunc(slices.Clone(flags), func(f cli.Flag) bool { return !described(f).IsVisible() || f.Names()[0] == flagHelp })
	slices.SortStableFunc(shown, func(a, b cli.Flag) int {
		return strings.Compare(groupOf(a)+"\x00"+a.Names()[0], groupOf(b)+"\x00"+b.Names()[0])
	})
	var groups [][]cli.Flag
	for i, f := range shown {
		if i == 0 || groupOf(f) != groupOf(shown[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], f)
	}
	return groups
}

// describedFlag is what the texts about flags are made of. Each kind of flag that clove has is one.
type describedFlag interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.CategorizableFlag
}

func described(f cli.Flag) describedFlag { return f.(describedFlag) }

// groupOf is empty for a flag of a command without groups.
func groupOf(f cli.Flag) string { return described(f).GetCategory() }

// flagHelpText is the help of one flag: its names, VALUE if it takes one, "..." if it
// may be repeated, and the explanation that urfave/cli makes, with the default.
func flagHelpText(f cli.Flag) string {
	names := make([]string, len(f.Names()))
	for i, name := range f.Names() {
		names[i] = spelling(name)
	}
	head := "   " + strings.Join(names, ", ")
	if described(f).TakesValue() {
		head += " VALUE"
	}
	if many, ok := f.(cli.DocGenerationSliceFlag); ok && many.IsSliceFlag() {
		head += "..."
	}
	// urfave/cli separates names and explanation by a tab.
	_, explanation, _ := strings.Cut(f.String(), "\t")
	text := hanging(wrapped(explanation, usualWidth-flagColumn), flagColumn)
	if len(head)+columnGap > flagColumn {
		return head + "\n" + strings.Repeat(" ", flagColumn) + text + "\n"
	}
	return head + strings.Repeat(" ", flagColumn-len(head)) + text + "\n"
}

// hanging joins lines and indents all but the first.
func hanging(lines []string, blanks int) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\n")
			if line != "" {
				b.WriteString(strings.Repeat(" ", blanks))
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
