package order

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
)

// Program is where clove-loop is inside a sandbox, shown read-only.
const Program = "/opt/clove/clove-loop"

// The defaults of an order.
const (
	Iterations = 50
	Context    = 100_000
)

// Order is one task for the loop.
type Order struct {
	Model        string // the name of a model that the run may call
	Instructions string // the agent's own, before those on the tools; may be empty
	Iterations   int    // answers of the model for one prompt, at most; 0: Iterations
	Context      int    // tokens of the conversation before it is compacted; 0: Context
	Prompt       string // empty only with Chat
	Chat         bool   // prompts come from standard input
}

// Args are the words behind the program's path.
func (o Order) Args() []string {
	args := []string{"--model=" + o.Model}
	if o.Instructions != "" {
		args = append(args, "--instructions="+o.Instructions)
	}
	if o.Iterations != 0 {
		args = append(args, "--max-iterations="+strconv.Itoa(o.Iterations))
	}
	if o.Context != 0 {
		args = append(args, "--context="+strconv.Itoa(o.Context))
	}
	if o.Chat {
		return append(args, "--chat")
	}
	return append(args, "--", o.Prompt)
}

// Parse reads what Args wrote, and fills in the defaults.
func Parse(args []string) (o Order, err error) {
	flags := flag.NewFlagSet("clove-loop", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Model, "model", "", "")
	flags.StringVar(&o.Instructions, "instructions", "", "")
	flags.IntVar(&o.Iterations, "max-iterations", 0, "")
	flags.IntVar(&o.Context, "context", 0, "")
	flags.BoolVar(&o.Chat, "chat", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if rest := flags.Args(); len(rest) == 1 {
		o.Prompt = rest[0]
	} else if len(rest) > 1 {
		return o, fmt.Errorf("it takes one prompt, not %d words: quote it", len(rest))
	}
	if o.Iterations == 0 {
		o.Iterations = Iterations
	}
	if o.Context == 0 {
		o.Context = Context
	}
	return o, o.Check()
}

// Check refuses an order that cannot be followed.
func (o Order) Check() error {
	switch {
	case o.Model == "":
		return errors.New("no model is named")
	case o.Prompt == "" && !o.Chat:
		return errors.New("the prompt is empty")
	case o.Prompt != "" && o.Chat:
		return errors.New("a chat takes its prompts from standard input")
	case o.Iterations < 0 || o.Iterations > 100_000:
		return fmt.Errorf("%d is no number of iterations from 1 to 100000", o.Iterations)
	case o.Context != 0 && (o.Context < 1000 || o.Context > 10_000_000):
		return fmt.Errorf("%d is no number of tokens from 1000 to 10000000", o.Context)
	}
	return nil
}
