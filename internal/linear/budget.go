package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// BudgetOp is what a worker asks an account for.
type BudgetOp string

// The operations. Each is one step.
const (
	BudgetReserve BudgetOp = "reserve" // Amount, or nothing
	BudgetSettle  BudgetOp = "settle"  // gives Held back and uses Amount
	BudgetCharge  BudgetOp = "charge"  // uses Amount, also beyond the limit
	BudgetShow    BudgetOp = "show"
)

// BudgetInput is an operation on one account.
type BudgetInput struct {
	Op      BudgetOp
	Account int
	Granted int64 // the account's limit, which is the same all the time
	Amount  int64
	Held    int64
}

// BudgetOutput is the answer. Used and Reserved are those that BudgetShow shows.
type BudgetOutput struct {
	Refused  bool
	Used     int64
	Reserved int64
}

// spent is the state of an account in the model.
type spent struct{ used, reserved int64 }

// BudgetModel is the sequential specification of an account with one limit.
var BudgetModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(input any) int { return input.(BudgetInput).Account })
	},
	Init: func() any { return spent{} },
	Step: func(state, input, output any) (bool, any) {
		next := state.(spent)
		legal := next.apply(input.(BudgetInput), output.(BudgetOutput))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(BudgetInput), output.(BudgetOutput)
		return fmt.Sprintf("%s %d (held %d): refused %v, used %d, reserved %d", in.Op, in.Amount, in.Held, out.Refused, out.Used, out.Reserved)
	},
}

// apply reports whether the answer is correct in this state, and changes the state.
func (s *spent) apply(in BudgetInput, out BudgetOutput) bool {
	switch in.Op {
	case BudgetReserve:
		fits := s.used+s.reserved+in.Amount <= in.Granted
		if fits {
			s.reserved += in.Amount
		}
		return fits != out.Refused
	case BudgetSettle:
		s.reserved -= in.Held
		s.used += in.Amount
		return !out.Refused
	case BudgetCharge:
		s.used += in.Amount
		return !out.Refused
	case BudgetShow:
		return s.used == out.Used && s.reserved == out.Reserved
	}
	return false
}
