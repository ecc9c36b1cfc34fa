package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

// manualCommand writes clove(1) from the table of commands, for packages.
func manualCommand() command {
	return command{
		usage: "write the manual page clove(1)",
		verbs: []verb{{line: "clove manual", act: prints(showManual)}},
	}
}

func showManual(s *screen, c *cli.Context) error {
	_, err := fmt.Fprint(s.out, manual(c.App))
	return err
}

// roff writes a page in the language of man(7).
type roff struct{ strings.Builder }

func (r *roff) section(name string) { fmt.Fprintf(r, ".SH %s\n", name) }

// text writes lines as they are: usages and descriptions are laid out already.
func (r *roff) text(lines string) {
	fmt.Fprintf(r, ".nf\n%s\n.fi\n", escapeRoff(lines))
}

func (r *roff) item(term, meaning string) {
	fmt.Fprintf(r, ".TP\n\\fB%s\\fR\n%s\n", escapeRoff(term), escapeRoff(meaning))
}

// escapeRoff escapes what troff would act on: backslashes, dashes, which it would turn
// into hyphens that cannot be pasted, and a dot or quote at the beginning of a line.
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// manual is the page of an app.
func manual(app *cli.App) string {
	var r roff
	fmt.Fprintf(&r, ".TH CLOVE 1 \"\" \"clove %s\" \"User Commands\"\n", escapeRoff(version))
	r.section("NAME")
	fmt.Fprintf(&r, "clove \\- %s\n", escapeRoff(app.Usage))
	r.section("SYNOPSIS")
	r.text(app.UsageText)
	r.section("COMMANDS")
	for _, c := range app.Commands {
		if !c.Hidden {
			r.command(c)
		}
	}
	r.section("FLAGS OF EVERY COMMAND")
	r.flags(globalFlags())
	// The one part that is not generated from the commands.
	r.section("EXIT STATUS OF CLOVE RUN")
	for _, row := range []struct {
		status  string
		meaning string
	}{
		{"the agent's own", "it ended by itself"},
		{"128+n", "signal n ended it, and not for a limit"},
		{fmt.Sprint(agent.ExitTimeout), "the wall clock or the CPU time was used up"},
		{fmt.Sprint(agent.ExitKilled), "memory or output limit, or killed"},
		{fmt.Sprint(agent.ExitStartFailed), "clove could not start it"},
		{"126, 127", "the command could not be executed, was not found inside"},
	} {
		r.item(row.status, row.meaning)
	}
	r.section("SEE ALSO")
	r.WriteString(".BR cloved (8),\n.BR clove.yaml (5)\n")
	return r.String()
}

// command is the part of the page about one command.
func (r *roff) command(c *cli.Command) {
	fmt.Fprintf(r, ".SS clove %s\n%s.\n.PP\n", escapeRoff(c.Name), escapeRoff(c.Usage))
	r.text(cmp.Or(c.UsageText, "clove "+c.Name))
	if c.Description != "" {
		r.WriteString(".PP\n")
		r.text(c.Description)
	}
	r.flags(c.Flags)
}

// flags leaves out the flags that help leaves out.
func (r *roff) flags(flags []cli.Flag) {
	for _, f := range flags {
		if !described(f).IsVisible() {
			continue
		}
		var names []string
		for _, name := range f.Names() {
			names = append(names, spelling(name))
		}
		term, meaning := strings.Join(names, ", "), described(f).GetUsage()
		if described(f).TakesValue() {
			term += " VALUE"
			if standard := described(f).GetDefaultText(); standard != "" {
				meaning += " (default: " + standard + ")"
			}
		}
		r.item(term, meaning)
	}
}
