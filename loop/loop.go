package loop

import (
	"context"
	"errors"
	"fmt"
	"io"

	"clove.run/clove/loop/conversation"
	"clove.run/clove/loop/model"
	"clove.run/clove/loop/order"
	"clove.run/clove/loop/tools"
)

// The exit statuses of clove-loop.
const (
	StatusDone        = 0
	StatusFailed      = 1   // the conversation cannot be kept or gone on with
	StatusUsage       = 2   // the order cannot be followed
	StatusIterations  = 3   // the turn has had all its answers
	StatusModel       = 4   // the model cannot be called, or answers what is refused
	StatusBudget      = 5   // a call does not fit in the run's budgets
	StatusInterrupted = 130 // by a signal
)

// basics are the instructions that each agent has.
const basics = `You are an agent in a sandbox. You work in the folder %s, and your tools act there with your rights.
Do the task with the tools, check the result, then call done with the answer for the user. Where a tool refuses something, say so and do not try to get around it.`

// Loop is one agent's loop.
type Loop struct {
	Order order.Order
	Model *model.Client
	Box   *tools.Box
	File  *conversation.File

	Text func(string) // gets the model's text as it comes; nil: it is not shown
	Log  io.Writer    // gets a line for each thing that is done

	Calls int         // answers since the start
	Used  model.Usage // of them, as far as it was reported
}

// errIterations is a turn that has had all its answers.
var errIterations = errors.New("the turn has had all its answers")

// Overhead is the estimated size, in tokens, of what each call has beside its messages.
func Overhead() (tokens int) {
	for _, t := range tools.All() {
		tokens += (len(t.Name) + len(t.Description) + len(t.Parameters)) / 4
	}
	return tokens
}

// Instructions are those that the model gets.
func (l *Loop) Instructions() string {
	text := fmt.Sprintf(basics, l.Box.Dir)
	if l.Order.Instructions != "" {
		text = l.Order.Instructions + "\n\n" + text
	}
	return text
}

// Turn does what the prompt says, and returns the answer. A turn of the same prompt that has not
// ended goes on.
func (l *Loop) Turn(ctx context.Context, prompt string) (answer string, err error) {
	if err := l.begin(prompt); err != nil {
		return "", err
	}
	for {
		turn := l.File.Turn()
		if !turn.Open {
			return answer, nil
		}
		if turn.Iterations >= l.Order.Iterations {
			return "", fmt.Errorf("%w: %d", errIterations, turn.Iterations)
		}
		if err := l.fit(ctx, turn); err != nil {
			return "", err
		}
		if answer, err = l.step(ctx, turn.Iterations+1); err != nil {
			return "", err
		}
	}
}

// begin brings the conversation up to the prompt.
func (l *Loop) begin(prompt string) error {
	if text := l.Instructions(); l.File.Instructions() != text {
		if err := l.append(conversation.Record{Message: model.Message{Role: model.RoleSystem, Content: text}}); err != nil {
			return err
		}
	}
	for _, call := range l.File.Unanswered() {
		l.say("%s was interrupted", call.Function.Name)
		if err := l.result(call, tools.Result{Text: "interrupted: the program ended while this call was made; it may have been done in part"}); err != nil {
			return err
		}
	}
	if turn := l.File.Turn(); turn.Open && turn.Prompt == prompt {
		l.say("going on after %d answers", turn.Iterations)
		return nil
	}
	return l.append(conversation.Record{Message: model.Message{Role: model.RoleUser, Content: prompt}})
}

// step asks the model once and makes the calls that it answers with.
func (l *Loop) step(ctx context.Context, iteration int) (text string, err error) {
	answer, err := l.ask(ctx, l.File.Messages(), "", l.Text)
	record := conversation.Record{Message: answer.Message, Usage: answer.Usage, Iteration: iteration}
	if err != nil {
		return "", l.interrupted(ctx, record, err)
	}
	if answer.Cut {
		l.say("the answer was cut at the model's maximum of output")
	}
	calls := answer.Message.ToolCalls
	// A cut answer without a call is not the end: the model is to go on.
	record.End = len(calls) == 0 && !answer.Cut
	if err := l.append(record); err != nil {
		return "", err
	}
	if len(calls) == 0 && answer.Cut {
		return "", l.append(conversation.Record{Message: model.Message{Role: model.RoleUser, Content: "Your answer was cut. Go on."}, Iteration: iteration})
	}
	text = answer.Message.Content
	if len(calls) > 0 && text != "" {
		l.show("\n")
	}
	for _, call := range calls {
		l.say("%s %#.200q", call.Function.Name, call.Function.Arguments)
		result, err := l.Box.Run(ctx, call.Function)
		if err != nil {
			return "", err // the call has no result: the next start says so
		}
		if err := l.result(call, result); err != nil {
			return "", err
		}
		if result.Done {
			text = result.Text
			l.show(text)
		}
	}
	return text, nil
}

// ask calls the model and counts what it uses.
func (l *Loop) ask(ctx context.Context, messages []model.Message, choice string, text func(string)) (model.Answer, error) {
	answer, err := l.Model.Ask(ctx, messages, choice, text)
	if err == nil {
		l.Calls++
	}
	if answer.Usage != nil {
		l.Used.In += answer.Usage.In
		l.Used.Out += answer.Usage.Out
	}
	return answer, err
}

func (l *Loop) show(text string) {
	if l.Text != nil {
		l.Text(text)
	}
}

// interrupted keeps what the user has seen of an answer that a signal ended. Calls in it were not
// made.
func (l *Loop) interrupted(ctx context.Context, record conversation.Record, err error) error {
	if ctx.Err() == nil {
		return err
	}
	record.ToolCalls, record.Interrupted = nil, true
	if record.Content != "" {
		if err := l.append(record); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *Loop) result(call model.ToolCall, r tools.Result) error {
	return l.append(conversation.Record{Message: model.Message{Role: model.RoleTool, Content: r.Text, ToolCallID: call.ID}, End: r.Done})
}

// errKeep is a conversation that cannot be kept.
var errKeep = errors.New("the conversation")

func (l *Loop) append(r conversation.Record) error {
	if err := l.File.Append(r); err != nil {
		return fmt.Errorf("%w: %w", errKeep, err)
	}
	return nil
}

// Sum says what the turn took: its answers in all its starts, and the tokens of this one.
func (l *Loop) Sum() {
	l.say("answers: %d; tokens: %d in, %d out", l.File.Turn().Iterations, l.Used.In, l.Used.Out)
}

func (l *Loop) say(format string, values ...any) { fmt.Fprintf(l.Log, "loop: "+format+"\n", values...) }

// Status is the exit status for an error of Turn.
func Status(err error) int {
	var failure *model.Failure
	switch {
	case err == nil:
		return StatusDone
	case errors.Is(err, context.Canceled):
		return StatusInterrupted
	case errors.Is(err, errIterations):
		return StatusIterations
	case errors.As(err, &failure) && failure.Spent:
		return StatusBudget
	case errors.As(err, &failure):
		return StatusModel
	}
	return StatusFailed
}
