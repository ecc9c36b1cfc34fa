package main

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	terminal "clove.run/clove/internal/screen"
)

const flagClipboard = "clipboard"

// clipboardUsage is of run, exec and attach.
const clipboardUsage = "let the agent's output set your terminal's clipboard (OSC 52)"

// displayFor makes what an agent's output passes on its way to a terminal. Both streams have
// one, because they lead to the same terminal.
func (s *screen) displayFor(c *cli.Context) {
	filter := terminal.New(c.Bool(flagClipboard))
	s.display = func(to *os.File) io.Writer {
		if !isTerminal(to) {
			return to
		}
		return filter.To(to)
	}
}
