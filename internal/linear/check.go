package linear

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Check returns an error if no sequential order explains the answers in history, which are
// Model's. A search that takes longer than patience is an error too.
func Check(history []porcupine.Operation, patience time.Duration) error {
	return search(Model, history, patience)
}

// CheckBudgets is Check for answers of BudgetModel.
func CheckBudgets(history []porcupine.Operation, patience time.Duration) error {
	return search(BudgetModel, history, patience)
}

// CheckGrants is Check for answers of GrantModel.
func CheckGrants(history []porcupine.Operation, patience time.Duration) error {
	return search(GrantModel, history, patience)
}

// CheckBoxes is Check for answers of BoxModel.
func CheckBoxes(history []porcupine.Operation, patience time.Duration) error {
	return search(BoxModel, history, patience)
}

// CheckKeys is Check for answers of KeyModel.
func CheckKeys(history []porcupine.Operation, patience time.Duration) error {
	return search(KeyModel, history, patience)
}

// CheckNames is Check for answers of NameModel.
func CheckNames(history []porcupine.Operation, patience time.Duration) error {
	return search(NameModel, history, patience)
}

// CheckJobs is Check for answers of JobModel.
func CheckJobs(history []porcupine.Operation, patience time.Duration) error {
	return search(JobModel, history, patience)
}

func search(model porcupine.Model, history []porcupine.Operation, patience time.Duration) error {
	result, info := porcupine.CheckOperationsVerbose(model, history, patience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d operations: no order was found within %s, nor is there none\n%s", len(history), patience, stuck(model, history, info))
	}
	return fmt.Errorf("no order of the %d operations explains their answers\n%s", len(history), stuck(model, history, info))
}

// shown bounds the operations in the explanation of a failure.
const shown = 20

// stuck describes the first pair that cannot be explained: the end of the longest partial
// order, the state after it, and the operations that came next, none of which fits.
func stuck(model porcupine.Model, history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	for index, pair := range model.Partition(history) {
		var longest []int
		for _, partial := range info.PartialLinearizations()[index] {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
		if len(longest) < len(pair) {
			return fmt.Sprintf("pair %d:\n%s", index, explain(model, pair, longest))
		}
	}
	return ""
}

// explain lists the last operations of an order, the state behind them, and those that
// could have come next.
func explain(model porcupine.Model, pair []porcupine.Operation, order []int) string {
	var text strings.Builder
	state := model.Init()
	done := map[int]bool{}
	for place, index := range order {
		o := pair[index]
		done[index] = true
		_, state = model.Step(state, o.Input, o.Output)
		if place >= len(order)-shown {
			describe(&text, model, "then", o)
		}
	}
	fmt.Fprintf(&text, "  now %+v\n", state)
	first := int64(math.MaxInt64)
	for index, o := range pair {
		if !done[index] {
			first = min(first, o.Return)
		}
	}
	for index, o := range pair {
		// An operation that began after another one had returned cannot come before it in
		// any order.
		if !done[index] && o.Call <= first {
			describe(&text, model, "open", o)
		}
	}
	return text.String()
}

func describe(text *strings.Builder, model porcupine.Model, word string, o porcupine.Operation) {
	fmt.Fprintf(text, "  %s %s to %s  worker %d  %s\n", word, time.Duration(o.Call), time.Duration(o.Return), o.ClientId, model.DescribeOperation(o.Input, o.Output))
}
