package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// NameOp is what a run does with a name.
type NameOp string

// The operations. Each is one step.
const (
	NameRegister NameOp = "register" // also where it has the name already
	NameRelease  NameOp = "release"
	NameLookup   NameOp = "lookup"
)

// NameInput is an operation of the run By on one name.
type NameInput struct {
	Op   NameOp
	Name int
	By   string
}

// NameOutput is the answer: the runs that hold the name.
type NameOutput struct {
	Refused bool // the run does not hold it, or none does
	Holders []string
}

// NameModel is the sequential specification of a name that several runs may hold. Its state is those runs.
var NameModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(input any) int { return input.(NameInput).Name })
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		legal, next := stepName(strings.Fields(state.(string)), input.(NameInput), output.(NameOutput))
		return legal, strings.Join(next, " ")
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(NameInput), output.(NameOutput)
		return fmt.Sprintf("%s by %s: refused %v, %q", in.Op, in.By, out.Refused, out.Holders)
	},
}

func stepName(holders []string, in NameInput, out NameOutput) (legal bool, next []string) {
	at, holds := slices.BinarySearch(holders, in.By)
	switch in.Op {
	case NameRegister:
		if !holds {
			holders = slices.Insert(holders, at, in.By)
		}
		return !out.Refused && same(holders, out.Holders), holders
	case NameRelease:
		if holds {
			holders = slices.Delete(holders, at, at+1)
		}
		return out.Refused == !holds, holders
	case NameLookup:
		return out.Refused == (len(holders) == 0) && same(holders, out.Holders), holders
	}
	return false, holders
}
