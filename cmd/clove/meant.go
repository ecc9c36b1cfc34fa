package main

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
)

// meant is the known word that was probably meant: one that begins with the word, the nearest, or one with which
// the word begins; empty: there is none.
func meant(word string, known []string) string {
	const short = 4 // letters of a word that is near to many others: the first must be right
	begins := func(long, part string) bool { return len(part) >= short-1 && strings.HasPrefix(long, part) }
	for _, k := range known {
		if begins(k, word) {
			return k
		}
	}
	if near := document.Nearest(word, known); near != "" && (len(word) >= short || near[:1] == word[:min(1, len(word))]) {
		return near
	}
	for _, k := range known {
		if begins(word, k) {
			return k
		}
	}
	return ""
}

// hints joins those that are not empty.
func hints(all ...string) string {
	return strings.ReplaceAll(strings.Join(slices.DeleteFunc(all, func(hint string) bool { return hint == "" }), "; "), "?; ", "? ")
}

// typed is words as a shell takes them.
func typed(words []string) string {
	plain := regexp.MustCompile(`^[\w@%+=:,./~-]+$`)
	quoted := slices.Clone(words)
	for i, word := range words {
		if !plain.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// unknownCommand is the error for a name that no command has: it is misspelled, one of docker's, or what run
// would start.
func unknownCommand(words []string, commands []*cli.Command) error {
	name, names := words[0], []string{flagHelp}
	for _, c := range commands {
		if c.Category != "" {
			names = append(names, c.Name)
		}
	}
	near := meant(name, names)
	if near != "" {
		near = "did you mean clove " + near + "?"
	}
	hint := hints(near, asRun(words))
	switch {
	case dockerCommands[name] != "":
		hint = dockerCommands[name]
	case hint == "":
		hint = "clove --help lists the commands; to run a program: clove run -- " + typed(words)
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("there is no command %q", name), Hint: hint}
}

// asRun is how a script or a program of this host is run with these words; empty: the first is neither.
func asRun(words []string) string {
	switch {
	case host.IsFile(words[0]):
		return "to run it: clove run " + asScript(words)
	case isProgram(words[0]):
		return hints(byItsName(words, words[min(1, len(words)-1)]), "to run the program: clove run -- "+typed(words))
	}
	return ""
}

// asScript is a script with its arguments, as run takes them.
func asScript(words []string) string {
	if len(words) == 1 {
		return typed(words)
	}
	return typed(words[:1]) + " " + terminator + " " + typed(words[1:])
}

// byItsName is how a script behind its interpreter is run by its own name; empty: the second word is no script. path is where it would be.
func byItsName(words []string, path string) string {
	if len(words) < 2 || !resolve.IsScript(path) || !host.IsFile(path) {
		return ""
	}
	return "clove run " + asScript(words[1:])
}

// isProgram reports whether a shell would find a program of this name.
func isProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil && !strings.Contains(name, "/")
}

// secondArgument refuses two arguments before "--". The first was meant as a script with arguments, as a program,
// or as docker's IMAGE; which of them exists decides over the hint. place is where a file of the caller's would be.
func secondArgument(own []string, place func(string) string) error {
	script := byItsName(own, place(own[1]))
	hint := fmt.Sprintf("there is no script %.64q, and there are no images; a program of the host's runs as clove run -- %s", own[0], typed(own[1:]))
	switch {
	case host.Exists(place(own[0])):
		hint = "write arguments of the agent after --: clove run " + asScript(own)
	case isProgram(own[0]) && script != "":
		hint = script + "; or clove run -- " + typed(own) + ", with --workspace . before the --, which shows it this folder"
	case isProgram(own[0]):
		hint = "a program is run behind --: clove run -- " + typed(own)
	case script != "":
		hint = script
	}
	return invalid("", hint, "there is a second word, %q, before --", own[1])
}

// asProgram is the error for a program in the place of SCRIPT, whose own flags were read as clove's; nil: it is none.
func (a *arranger) asProgram() error {
	if a.command != runName || len(a.behind) < 2 || a.behind[1] == terminator || host.Exists(a.behind[0]) || !isProgram(a.behind[0]) {
		return nil
	}
	if !isFlag(a.behind[1]) {
		return secondArgument(a.behind, func(path string) string { return path })
	}
	return invalid("", "a program is run behind --: clove run -- "+typed(a.behind), "%s is a program, not a script, and %s behind it would be a flag of clove's", a.behind[0], a.behind[1])
}

// unknown is the error for a flag that the command does not have. Its hint is for the most likely mistake: a
// misspelled flag, one of the agent's, one of docker's, or one before the command's name.
func (a *arranger) unknown(flag string) error {
	if err := a.asProgram(); err != nil {
		return err
	}
	if a.command == runName && len(a.args) > 1 {
		return secondArgument(a.behind, func(path string) string { return path }) // docker's IMAGE COMMAND, whose flags are the command's
	}
	if instead := dockerFlags[a.command][flag]; instead != "" {
		return &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: "clove " + a.command + " has no such flag", Hint: instead}
	}
	near := a.near(flag)
	hint := "clove " + a.command + " --help lists its flags"
	switch a.command {
	case "":
		hint = "write the flags of a command after its name: clove run --memory 256M agent.py"
	case runName, renderName:
		script := "SCRIPT"
		if len(a.args) > 0 && a.args[0] != terminator {
			script = typed(a.args[len(a.args)-1:])
		}
		hint = "write flags of the agent after --: clove run " + script + " -- " + flag + "; clove run --help lists clove's own"
		if near != "" {
			hint = "a flag of the agent's goes after --"
		}
	default:
		if near != "" {
			hint = ""
		}
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: "unknown flag " + flag, Hint: hints(near, hint)}
}

// near proposes a flag; empty: none is near.
func (a *arranger) near(flag string) string {
	word := strings.TrimLeft(flag, "-")
	var names []string
	for spelled := range maps.Keys(a.flags) {
		names = append(names, strings.TrimLeft(spelled, "-"))
	}
	if a.command == "" {
		names = append(names, "version") // arrange takes it alone
	}
	slices.Sort(names) // a name is before those that begin with it
	short := len(word) == 1
	names = slices.DeleteFunc(names, func(name string) bool { return (len(name) == 1) != short || short && name != word })
	if near := meant(word, names); near != "" {
		return "did you mean " + spelling(near) + "?"
	}
	return ""
}

// nearRun adds the run that was probably meant to the error for one that does not exist.
func (p program) nearRun(c *cli.Context, reference string, err error) error {
	if agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	if d, derr := p.cloved(c); derr == nil {
		d.Close()
	} else if derr.Error() == err.Error() {
		return err // no cloved looked for the run
	}
	listed, lerr := p.list(c, true)
	if lerr != nil {
		return err
	}
	var names []string
	for _, one := range listed {
		names = append(names, shown(one.Run.Name()))
	}
	near := meant(reference, names)
	if near == "" || near == reference {
		return err
	}
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindNotFound, Step: f.Step, Message: f.Message, Hint: "did you mean " + near + "?"}
}
