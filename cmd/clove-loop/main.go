package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"clove.run/clove/loop"
	"clove.run/clove/loop/conversation"
	"clove.run/clove/loop/model"
	"clove.run/clove/loop/order"
	"clove.run/clove/loop/tools"
)

// conversationFile is below the agent's home.
const conversationFile = ".clove/conversation.jsonl"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	o, err := order.Parse(args)
	if err != nil {
		return fail(loop.StatusUsage, err)
	}
	l, status := newLoop(o)
	if l == nil {
		return status
	}
	defer l.File.Close()
	if o.Chat {
		return chat(l)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	answer, err := l.Turn(ctx, o.Prompt)
	l.Sum()
	if err != nil {
		return fail(loop.Status(err), err)
	}
	if _, err := fmt.Println(answer); err != nil {
		return fail(loop.StatusFailed, err)
	}
	return loop.StatusDone
}

// newLoop opens what the loop needs; nil: status says why not.
func newLoop(o order.Order) (l *loop.Loop, status int) {
	url := os.Getenv("OPENAI_BASE_URL")
	home := os.Getenv("HOME")
	dir, err := os.Getwd()
	if err == nil && (url == "" || !filepath.IsAbs(home)) {
		err = fmt.Errorf("OPENAI_BASE_URL and HOME must be set, as clove run --model does")
	}
	if err != nil {
		return nil, fail(loop.StatusUsage, err)
	}
	file, dropped, err := conversation.Open(filepath.Join(home, conversationFile), loop.Overhead())
	if err != nil {
		return nil, fail(loop.StatusFailed, err)
	}
	if dropped > 0 {
		fmt.Fprintf(os.Stderr, "loop: the last message was not wholly written: %d bytes are gone\n", dropped)
	}
	client := &model.Client{URL: url, Key: os.Getenv("OPENAI_API_KEY"), Model: o.Model, Tools: tools.All()}
	return &loop.Loop{Order: o, Model: client, Box: &tools.Box{Dir: dir}, File: file, Log: os.Stderr}, loop.StatusDone
}

func fail(status int, err error) int {
	fmt.Fprintln(os.Stderr, "loop: "+err.Error())
	return status
}
