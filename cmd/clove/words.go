package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

// word is what a command does whose first argument says what: clove audit verify.
type word struct {
	flags       []string // those of the command's that this word takes
	least, most int      // how many arguments follow it; most 0: least
	do          func(*program, *cli.Context) error
}

// anyNumber is word.most without a bound.
const anyNumber = 1 << 30

// doWord finds the word and checks what stands behind it. hint shows lines that are right.
func (p *program) doWord(c *cli.Context, words map[string]word, hint string) error {
	name := c.Args().First()
	w, known := words[name]
	if behind := c.NArg() - 1; !known || behind < w.least || behind > max(w.least, w.most) {
		return &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: fmt.Sprintf("it does not take the words %q", c.Args().Slice()), Hint: hint}
	}
	for _, flag := range c.LocalFlagNames() {
		if !slices.Contains(w.flags, flag) && len(flag) > 1 { // one letter is another name of a flag
			return invalid(flag, "clove "+c.Command.Name+" --help says whose it is", "clove %s %s does not take it", c.Command.Name, name)
		}
	}
	return w.do(p, c)
}
