package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Of two reservations that do not fit together, one may be granted.
func TestBudgetModel(t *testing.T) {
	t.Parallel()
	at := func(in BudgetInput, out BudgetOutput, call, answer int64) porcupine.Operation {
		in.Granted = 10
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: answer}
	}
	reserve, show := BudgetInput{Op: BudgetReserve, Amount: 6}, BudgetInput{Op: BudgetShow}
	refused := BudgetOutput{Refused: true}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		fails   bool
	}{
		"one of two":  {[]porcupine.Operation{at(reserve, refused, 0, 5), at(reserve, BudgetOutput{}, 1, 4)}, false},
		"both":        {[]porcupine.Operation{at(reserve, BudgetOutput{}, 0, 5), at(reserve, BudgetOutput{}, 1, 4)}, true},
		"neither":     {[]porcupine.Operation{at(reserve, refused, 0, 5), at(reserve, refused, 1, 4)}, true},
		"lost":        {[]porcupine.Operation{at(reserve, BudgetOutput{}, 0, 1), at(show, BudgetOutput{}, 2, 3)}, true},
		"shown early": {[]porcupine.Operation{at(reserve, BudgetOutput{}, 0, 5), at(show, BudgetOutput{}, 2, 3)}, false},
		"settled over": {[]porcupine.Operation{at(reserve, BudgetOutput{}, 0, 1), at(BudgetInput{Op: BudgetSettle, Held: 6, Amount: 11}, BudgetOutput{}, 2, 3),
			at(BudgetInput{Op: BudgetCharge, Amount: 1}, BudgetOutput{}, 4, 5), at(show, BudgetOutput{Used: 12}, 6, 7)}, false},
	} {
		if err := CheckBudgets(c.history, time.Minute); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
