package loop

import (
	"context"
	"fmt"

	"clove.run/clove/loop/conversation"
	"clove.run/clove/loop/model"
)

// sumUp asks for a summary.
const sumUp = `The conversation has become too long and is replaced by what you write now. Sum up what matters for going on: the task, decisions, what was done with which result, what of it is not checked, paths and names, what is left to do. Write only the summary, as text, without a tool call.`

// fit has the model sum up a conversation that is full.
func (l *Loop) fit(ctx context.Context, turn conversation.Turn) error {
	limit := l.Order.Context
	if !l.File.Full(limit) {
		return nil
	}
	before := l.File.Tokens()
	l.say("the conversation has %d of %d tokens: the model sums it up", before, limit)
	ask := append(l.File.Messages(), model.Message{Role: model.RoleUser, Content: sumUp})
	answer, err := l.ask(ctx, ask, "none", nil)
	if err != nil {
		return err
	}
	summary := answer.Message.Content
	if summary == "" || answer.Cut {
		return &model.Failure{Message: "the model gave no whole summary of the conversation, which stays as it is"}
	}
	count := l.File.Len()
	kept, err := l.File.Replace(func(kept string) conversation.Record {
		text := fmt.Sprintf("%s\n\n[This is your summary of %d earlier messages; all of them are in %s in the folder of the conversation.]", summary, count, kept)
		if turn.Open {
			text = turn.Prompt + "\n\n[What was done for this so far:]\n\n" + text
		}
		record := conversation.Record{Message: model.Message{Role: model.RoleUser, Content: text}, SummaryOf: kept, Iteration: turn.Iterations}
		if turn.Open {
			record.Prompt = turn.Prompt
		}
		return record
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errKeep, err)
	}
	after := l.File.Tokens()
	l.say("%d messages are summed up in %d tokens; %s has them", count, after, kept)
	if l.File.Full(limit) {
		return &model.Failure{Message: fmt.Sprintf("the conversation has %d tokens also when it is summed up, and may have %d", after, limit)}
	}
	return nil
}
