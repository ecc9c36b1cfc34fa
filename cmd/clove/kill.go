package main

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/client"
)

const flagSignal = "signal"

func (p *program) killCommand() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "send runs a signal, KILL if no other is named", UsageText: "clove kill [-s SIGNAL] NAME|ID...",
		Flags:  []cli.Flag{&cli.StringFlag{Name: flagSignal, Aliases: []string{"s"}, Usage: "name or number, for example HUP", Value: "KILL"}},
		Action: p.kill,
	}
}

// kill sends, and waits for nothing: only KILL is sure to end a run.
func (p *program) kill(c *cli.Context) error {
	number, err := parseSignal(flagSignal, c.String(flagSignal))
	if err != nil {
		return err
	}
	return p.askEach(c, func(d *client.Client, reference string) error { return d.Signal(c.Context, reference, number) })
}

// parseSignal reads TERM, SIGTERM, term and 15.
func parseSignal(flag, text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 64 {
		return syscall.Signal(n), nil
	}
	word := strings.ToUpper(text)
	if !strings.HasPrefix(word, "SIG") {
		word = "SIG" + word
	}
	if number := unix.SignalNum(word); number != 0 {
		return number, nil
	}
	return 0, invalid(flag, "write a name such as TERM or HUP, or a number from 1 to 64", "%q is not a signal", text)
}
