package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"clove.run/clove/loop"
	"clove.run/clove/loop/tools"
)

// maxPrompt is what a line of a chat may have in bytes.
const maxPrompt = 1 << 20

// chat reads prompts from standard input until it ends.
func chat(l *loop.Loop) int {
	l.Text = func(piece string) { fmt.Print(piece) }
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxPrompt)
	for prompt(); lines.Scan(); prompt() {
		switch line := strings.TrimSpace(lines.Text()); line {
		case "":
		case "/quit":
			return loop.StatusDone
		case "/tools":
			for _, t := range tools.All() {
				fmt.Printf("%-12s %s\n", t.Name, t.Description)
			}
		case "/cost":
			fmt.Printf("%d answers since the start, %d tokens in, %d out; the conversation has %d of %d tokens\n", l.Calls, l.Used.In, l.Used.Out, l.File.Tokens(), l.Order.Context)
		default:
			if status := talk(l, signals, line); status != loop.StatusDone {
				return status
			}
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fail(loop.StatusFailed, err)
	}
	return loop.StatusDone
}

func prompt() { fmt.Print("> ") }

// talk does one turn, which a SIGINT ends. A status other than done ends the chat.
func talk(l *loop.Loop, signals <-chan os.Signal, prompt string) int {
	select {
	case <-signals: // from before
	default:
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-over:
		}
	}()
	_, err := l.Turn(ctx, prompt)
	switch status := loop.Status(err); status {
	case loop.StatusDone:
		fmt.Println()
		return loop.StatusDone
	case loop.StatusInterrupted:
		fmt.Println("\n[interrupted]")
		return loop.StatusDone
	case loop.StatusFailed:
		return fail(status, err)
	default: // the next prompt may do better
		fail(status, err)
		return loop.StatusDone
	}
}
