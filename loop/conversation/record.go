package conversation

import (
	"time"

	"clove.run/clove/loop/model"
)

// Record is one line.
type Record struct {
	Time time.Time `json:"time"`
	model.Message
	Usage *model.Usage `json:"usage,omitempty"` // of an answer

	// Iteration is the number of the answer within its turn, from 1. A message of the user's
	// that has one belongs to the turn that goes on.
	Iteration int `json:"iteration,omitempty"`
	// End ends the turn that the last prompt began.
	End bool `json:"end,omitempty"`
	// Interrupted is an answer that is not whole.
	Interrupted bool `json:"interrupted,omitempty"`
	// Prompt and SummaryOf are those of a summary: the prompt whose turn goes on (empty: none
	// does), and the file with what was summed up.
	Prompt    string `json:"prompt,omitempty"`
	SummaryOf string `json:"summary_of,omitempty"`
}

// Turn is where a conversation stands.
type Turn struct {
	Prompt     string
	Iterations int  // answers so far
	Open       bool // it has not ended
}

// Turn returns the last one; the zero value: there was none.
func (f *File) Turn() (t Turn) {
	for _, r := range f.records {
		switch {
		case r.SummaryOf != "":
			t = Turn{r.Prompt, r.Iteration, r.Prompt != ""}
		case r.Role == model.RoleUser && r.Iteration == 0:
			t = Turn{r.Content, 0, true}
		case r.Iteration > 0:
			t.Iterations = r.Iteration
		}
		if r.End {
			t.Open = false
		}
	}
	return t
}

// Messages is the conversation for the model. Of several instructions the last count.
func (f *File) Messages() []model.Message {
	messages := []model.Message{{Role: model.RoleSystem, Content: f.Instructions()}}
	for _, r := range f.records {
		if r.Role != model.RoleSystem {
			messages = append(messages, r.Message)
		}
	}
	return messages
}

// Instructions are the last; empty: there are none.
func (f *File) Instructions() (text string) {
	for _, r := range f.records {
		if r.Role == model.RoleSystem {
			text = r.Content
		}
	}
	return text
}

// Tokens is the size of the conversation: what the provider reported for the last answer and an
// estimate of what came behind it, or an estimate of all if that is more.
func (f *File) Tokens() int {
	all, behind := f.tools, 0
	for _, r := range f.records {
		size := r.Message.Tokens()
		all, behind = all+size, behind+size
		if r.Usage != nil {
			behind = r.Usage.In + r.Usage.Out
		}
	}
	return max(all, behind)
}

// Unanswered are the tool calls of the last answer that have no result.
func (f *File) Unanswered() []model.ToolCall {
	var open []model.ToolCall
	for _, r := range f.records {
		switch {
		case r.Role == model.RoleAssistant:
			open = r.ToolCalls
		case r.Role == model.RoleTool && len(open) > 0:
			open = open[1:] // results are in the order of the calls
		case r.Role == model.RoleUser:
			open = nil
		}
	}
	return open
}

// Len is the number of records.
func (f *File) Len() int { return len(f.records) }
