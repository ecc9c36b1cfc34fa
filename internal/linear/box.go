package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// BoxOp is what a caller does with a mailbox.
type BoxOp string

// The operations. Each is one step.
const (
	BoxSend    BoxOp = "send"    // puts a message behind the others
	BoxReceive BoxOp = "receive" // the first messages, at most Most
	BoxAck     BoxOp = "ack"     // takes the message ID out
)

// BoxInput is an operation on one mailbox.
type BoxInput struct {
	Op   BoxOp
	Box  int
	ID   string
	Most int
}

// BoxOutput is the answer: the message that was sent, or those that were received.
type BoxOutput struct {
	Refused bool // there is no message ID
	IDs     []string
}

// boxState is the state of a mailbox in the model.
type boxState struct {
	waiting string // the ids of the messages in their order
	last    string // the id of the newest one, also where it is gone
}

// BoxModel is the sequential specification of a mailbox whose messages have one priority. Their ids grow in
// the order in which they came; without that, a search for an order would take too long.
var BoxModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(input any) int { return input.(BoxInput).Box })
	},
	Init: func() any { return boxState{} },
	Step: func(state, input, output any) (bool, any) {
		next := state.(boxState)
		legal := next.apply(input.(BoxInput), output.(BoxOutput))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(BoxInput), output.(BoxOutput)
		return fmt.Sprintf("%s %s: refused %v, %q", in.Op, in.ID, out.Refused, out.IDs)
	},
}

// apply reports whether the answer is correct in this state, and changes the state.
func (b *boxState) apply(in BoxInput, out BoxOutput) bool {
	waiting := strings.Fields(b.waiting)
	switch in.Op {
	case BoxSend:
		if out.Refused || len(out.IDs) != 1 || out.IDs[0] <= b.last {
			return false
		}
		*b = boxState{strings.Join(append(waiting, out.IDs[0]), " "), out.IDs[0]}
		return true
	case BoxReceive:
		return slices.Equal(out.IDs, waiting[:min(in.Most, len(waiting))])
	case BoxAck:
		at := slices.Index(waiting, in.ID)
		if at >= 0 {
			b.waiting = strings.Join(slices.Delete(waiting, at, at+1), " ")
		}
		return out.Refused == (at < 0)
	}
	return false
}
