package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"clove.run/clove/tools"
	"clove.run/clove/tools/builtin"
	"clove.run/clove/tools/schema"
)

// Bounds of the program.
const (
	maxOrder = 256 << 10 // bytes; JSON may write a character as six
	maxMost  = 24 << 20  // bytes of a result
	notes    = 512       // bytes of a result that are kept for lines on what is left out
)

func main() {
	// A process that the call starts ends with the thread that started it: the main one.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	status := call(ctx, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// call makes the call that an order asks for.
func call(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := read(stdin)
	if err == nil {
		err = check(o)
	}
	if err != nil {
		return fail(stderr, tools.ExitInvalid, err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fail(stderr, tools.ExitFailed, fmt.Errorf("cannot find the working directory: %w", err))
	}
	box := builtin.Box{Dir: dir, Most: o.Most - min(notes, o.Most/8)}
	result, err := box.Do(ctx, o)
	if _, failed := io.WriteString(stdout, fit(result, o.Most)); failed != nil && err == nil {
		err = failed
	}
	var invalid *builtin.Invalid
	switch {
	case errors.As(err, &invalid):
		return fail(stderr, tools.ExitInvalid, err)
	case ctx.Err() != nil:
		return fail(stderr, tools.ExitFailed, errors.New("the call was ended"))
	case err != nil:
		return fail(stderr, tools.ExitFailed, err)
	}
	return tools.ExitDone
}

// read reads an order to the end of stdin.
func read(stdin io.Reader) (o tools.Order, err error) {
	text, err := io.ReadAll(io.LimitReader(stdin, maxOrder+1))
	switch {
	case err != nil:
		return o, fmt.Errorf("cannot read the order: %w", err)
	case len(text) > maxOrder:
		return o, fmt.Errorf("the order has more than %d bytes", maxOrder)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, fmt.Errorf("the order is none: %w", err)
	}
	if len(o.Arguments) > tools.MaxArguments {
		return o, fmt.Errorf("the arguments have more than %d bytes", tools.MaxArguments)
	}
	if o.Arguments, err = single(o.Arguments); err != nil {
		return o, fmt.Errorf("the arguments: %w", err)
	}
	if o.Most <= 0 {
		o.Most = tools.MaxText
	}
	o.Most = min(o.Most, maxMost)
	return o, nil
}

// single has each name of an object once. Another reader of the same text, as a command that reads
// its stdin, could take another of two values than the one that was checked.
func single(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 {
		return json.RawMessage("{}"), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // as they are written
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// check checks the arguments of an order.
func check(o tools.Order) error {
	against := o.Schema
	if o.Command == nil {
		d, known := tools.Builtin(o.Tool)
		if !known {
			return fmt.Errorf("there is no built-in tool %.64q", o.Tool)
		}
		against = d.Arguments
	} else if err := tools.ValidateCommand(o.Command, o.Schema); err != nil {
		return err
	}
	if len(against) == 0 {
		return nil
	}
	s, err := schema.Compile(against)
	if err != nil {
		return err
	}
	return s.Check(o.Arguments)
}

// fit is a result of at most so many bytes, with what is left out in its last line, if that has room.
func fit(result string, most int) string {
	const line = 64 // bytes, at least as long as it
	result = strings.ToValidUTF8(result, "\uFFFD")
	switch {
	case len(result) <= most:
		return result
	case most <= line:
		return strings.ToValidUTF8(result[:most], "")
	}
	return builtin.Cut(result, most-line)
}

func fail(stderr io.Writer, status int, err error) int {
	fmt.Fprintln(stderr, builtin.Cut(err.Error(), tools.MaxError-notes))
	return status
}
